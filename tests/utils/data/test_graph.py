"""What a datapipe reads from."""
import pytest

from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.graph import traverse, traverse_dps


def test_datapipes_by_what_they_read_from():
    one, other = IterableWrapper([1]), IterableWrapper([2])
    both = one.zip(other)
    last = both.batch(2)
    assert traverse_dps(last) == {id(last): (last, {id(both): (both, {
        id(one): (one, {}), id(other): (other, {})})})}


def test_attributes_of_other_objects():
    class Holder:
        def __init__(self, value):
            self.value = value
    one, last = IterableWrapper([1]), IterableWrapper([2])
    last.held = Holder(one)
    assert traverse_dps(last)[id(last)][1] == {}
    with pytest.warns(FutureWarning, match="Please use `traverse_dps`"):
        assert id(one) in traverse(last)[id(last)][1]
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`"):
        traverse_dps(3)
