"""How the samples of a batch are got from a dataset."""
import pytest

import flambeau
from flambeau.utils.data import TensorDataset, default_collate
from flambeau.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher


def test_by_number():
    whole = _MapDatasetFetcher([10, 20, 30], True, list, False)
    assert whole.fetch([2, 0]) == [30, 10]
    assert _MapDatasetFetcher([10, 20], False, lambda x: x + 1, False).fetch(1) == 21


def test_many_at_once():
    class Many:
        def __getitems__(self, numbers):
            return [n * n for n in numbers]
    assert _MapDatasetFetcher(Many(), True, list, False).fetch([2, 3]) == [4, 9]


@pytest.mark.parametrize("numbers", [[2, 0, 2], [1]])
def test_rows_of_tensors_are_those_that_stacking_gives(numbers):
    data = TensorDataset(flambeau.arange(6.0).reshape(3, 2), flambeau.tensor([5, 6, 7]))
    found = _MapDatasetFetcher(data, True, default_collate, False).fetch(numbers)
    for tensor, rows in zip(data.tensors, found):
        assert flambeau.equal(rows, tensor[numbers])


@pytest.mark.parametrize("drop_last, batches", [(False, [[0, 1], [2, 3], [4]]),
                                                (True, [[0, 1], [2, 3]])])
def test_from_an_iterator(drop_last, batches):
    fetcher = _IterableDatasetFetcher(range(5), True, list, drop_last)
    found = []
    with pytest.raises(StopIteration):
        while True:
            found.append(fetcher.fetch([0, 0]))
    assert found == batches
    with pytest.raises(StopIteration):
        fetcher.fetch([0, 0])


def test_from_an_iterator_one_by_one():
    fetcher = _IterableDatasetFetcher([7], False, str, False)
    assert fetcher.fetch(None) == "7"
    with pytest.raises(StopIteration):
        fetcher.fetch(None)
