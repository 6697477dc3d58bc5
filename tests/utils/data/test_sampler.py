"""Samplers draw what PyTorch's draw, and leave the generator where PyTorch's leave it."""

import pytest

import flambeau as torch
from flambeau.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

# What PyTorch 2.13 gives under manual_seed(3): with the global generator, and with one given.
RANDOM = [
    ({}, [7, 0, 9, 1, 6, 4, 5, 3, 2, 8], 0.2858, [6, 0, 3, 7, 8, 5, 1, 9, 2, 4], 0.8473),
    ({"num_samples": 4}, [7, 0, 9, 1], 0.2858, [6, 0, 3, 7], 0.8879),
    ({"num_samples": 20}, [7, 0, 9, 1, 6, 4, 5, 3, 2, 8, 9, 5, 6, 8, 7, 1, 3, 2, 0, 4], 0.2858,
     [6, 0, 3, 7, 8, 5, 1, 9, 2, 4, 9, 8, 5, 3, 0, 6, 7, 2, 1, 4], 0.5997),
    ({"replacement": True}, [7, 8, 5, 1, 8, 6, 2, 2, 3, 9], 0.2858,
     [6, 8, 7, 7, 0, 0, 0, 5, 1, 9], 0.4510),
]


@pytest.mark.parametrize("options, drawn, after, with_generator, generator_after", RANDOM)
def test_random(options, drawn, after, with_generator, generator_after):
    torch.manual_seed(3)
    sampler = RandomSampler(range(10), **options)
    assert list(sampler) == drawn and len(sampler) == len(drawn)
    assert torch.rand(1).item() == pytest.approx(after, abs=5e-5)
    generator = torch.Generator().manual_seed(3)
    assert list(RandomSampler(range(10), generator=generator, **options)) == with_generator
    assert torch.rand(1, generator=generator).item() == pytest.approx(generator_after, abs=5e-5)


def test_other_random_samplers():
    torch.manual_seed(0)
    assert list(SubsetRandomSampler([5, 6, 7])) == [7, 5, 6]
    torch.manual_seed(0)
    assert list(WeightedRandomSampler([0.1, 0.9, 0.3], 5)) == [2, 1, 1, 2, 1]
    assert list(WeightedRandomSampler([0.1, 0.9, 0.3], 2, replacement=False)) == [1, 2]


def test_batches():
    assert list(BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(BatchSampler(SequentialSampler("abcdefg"), 3, False))[-1] == [6]
    assert len(BatchSampler(range(7), 3, True)) == 2 and len(BatchSampler(range(7), 3, False)) == 3


@pytest.mark.parametrize("make, error, message", [
    (lambda: RandomSampler("ab", replacement=3), TypeError, "replacement should be a boolean"),
    (lambda: RandomSampler("ab", num_samples=0), ValueError, "num_samples should be a positive"),
    (lambda: RandomSampler([]), ValueError, "num_samples should be a positive integer value"),
    (lambda: WeightedRandomSampler([[0.1]], 1), ValueError, "weights should be a 1d sequence"),
    (lambda: WeightedRandomSampler([0.1], True), ValueError, "num_samples should be a positive"),
    (lambda: BatchSampler("ab", True, False), ValueError, "batch_size should be a positive"),
    (lambda: BatchSampler("ab", 2, 3), ValueError, "drop_last should be a boolean value, but"),
    (lambda: DistributedSampler("ab", 2, 2), ValueError, r"Invalid rank 2, rank should be in the"),
    (lambda: iter(Sampler()), NotImplementedError, None),
])
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
