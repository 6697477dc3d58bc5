"""Datasets and how they combine."""

import pytest

import flambeau as torch
from flambeau.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Count(IterableDataset):
    def __init__(self, n=3):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_tensor_dataset():
    data = TensorDataset(torch.arange(3), torch.arange(6).reshape(3, 2))
    assert len(data) == 3
    a, b = data[1]
    assert a.item() == 1 and b.tolist() == [2, 3]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_concatenation():
    data = ConcatDataset([range(3), range(10, 12)])
    assert [data[i] for i in range(5)] == [0, 1, 2, 10, 11]
    assert data[-1] == 11 and data[-5] == 0
    assert data.cumulative_sizes == [3, 5]
    with pytest.raises(ValueError, match="absolute value of index should not exceed"):
        data[-6]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Count()])
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert data.cummulative_sizes == [3, 5]


def test_plus():
    data = TensorDataset(torch.arange(2))
    assert len(data + data) == 4
    assert list(Count(2) + Count(1)) == [0, 1, 0]


def test_chain():
    assert len(ChainDataset([Count(2), Count(3)])) == 5
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(ChainDataset([[1, 2]]))


def test_stack():
    assert StackDataset("ab", [0, 1])[1] == ("b", 1)
    named = StackDataset(x="ab", y=Subset([5, 6, 7], [2, 0]))
    assert named[0] == {"x": "a", "y": 7}
    assert named.__getitems__([1, 0]) == [{"x": "b", "y": 5}, {"x": "a", "y": 7}]
    with pytest.raises(ValueError, match="At least one dataset should be passed"):
        StackDataset()
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset("ab", "abc")
    with pytest.raises(ValueError, match="both types are given"):
        StackDataset("ab", y="ab")


def test_subset():
    assert list(Subset("abcd", [3, 1])) == ["d", "b"]
    assert Subset(Subset("abcd", [3, 1, 0]), [2, 0]).__getitems__([0, 1]) == ["a", "d"]


def test_random_split_is_pytorchs():
    generator = torch.Generator().manual_seed(0)
    parts = random_split(range(10), [3, 7], generator=generator)
    assert [part.indices for part in parts] == [[4, 1, 7], [5, 3, 9, 0, 8, 6, 2]]
    generator.manual_seed(0)
    parts = random_split(range(10), [0.3, 0.3, 0.4], generator=generator)
    assert [part.indices for part in parts] == [[4, 1, 7], [5, 3, 9], [0, 8, 6, 2]]


def test_random_split_lengths():
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        assert [len(part) for part in random_split(range(2), [0.1, 0.2, 0.7])] == [1, 0, 1]


def test_a_dataset_needs_getitem():
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        Dataset()[0]
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()
