"""The share of a dataset that one of several processes trains on."""

import pytest

from flambeau.utils.data import DistributedSampler


def test_distributed():
    shares = [list(DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert shares == [[4, 5, 0, 2], [1, 3, 8, 4], [7, 9, 6, 1]]
    options = {"shuffle": False, "drop_last": True}
    shares = [list(DistributedSampler(range(10), 3, rank, **options)) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    shares = [list(DistributedSampler(range(2), 5, rank, shuffle=False)) for rank in range(5)]
    assert shares == [[0], [1], [0], [1], [0]]
    sampler = DistributedSampler(range(10), 3, 0, seed=4)
    sampler.set_epoch(5)
    assert list(sampler) == [0, 7, 9, 3]


@pytest.mark.parametrize("n, replicas", [(10, 3), (9, 3), (2, 5), (0, 2)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_shares_are_equal(n, replicas, drop_last):
    shares = [list(DistributedSampler(range(n), replicas, rank, drop_last=drop_last))
              for rank in range(replicas)]
    lengths = {len(DistributedSampler(range(n), replicas, rank, drop_last=drop_last))
               for rank in range(replicas)}
    assert lengths == {len(share) for share in shares}
    if not drop_last:
        assert {i for share in shares for i in share} == set(range(n))


def test_epochs_have_orders_of_their_own():
    sampler = DistributedSampler(range(50), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_without_a_group():
    with pytest.raises((RuntimeError, ValueError), match="Default process group has not been init"):
        DistributedSampler(range(3))
