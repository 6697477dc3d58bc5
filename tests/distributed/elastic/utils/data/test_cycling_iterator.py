"""Epochs in a row."""
import pytest

from flambeau.distributed.elastic.utils.data import CyclingIterator


@pytest.mark.parametrize(("n", "start", "found"), [
    (3, 0, [1, 2, 2]), (3, 1, [1, 2, 2]), (3, 2, [2, 2]), (1, 0, []), (1, 3, [3, 3, 3])])
def test_epochs_in_a_row(n, start, found):
    assert list(CyclingIterator(n, lambda epoch: iter([epoch] * epoch), start)) == found


def test_epochs_begin_when_they_are_reached():
    begun = []

    def generate(epoch):
        begun.append(epoch)
        return iter([epoch])
    items = CyclingIterator(2, generate)
    assert begun == [0] and iter(items) is items
    assert next(items) == 0 and begun == [0]
    assert next(items) == 1 and begun == [0, 1]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(items)
