"""Sets that keep the order in which their elements came."""

import copy
import pickle

import pytest

from flambeau.utils._ordered_set import OrderedSet


def test_ordered_sets():
    s = OrderedSet([3, 1, 2, 3])
    assert repr(s) == "OrderedSet([3, 1, 2])" and s == {1, 2, 3}
    assert list(s | [5]) == [3, 1, 2, 5] and list(s & [1, 3]) == [1, 3] and list(s - [1]) == [3, 2]
    assert list(s ^ OrderedSet([1, 9])) == [3, 2, 9]
    assert list(s.union([7], [8])) == [3, 1, 2, 7, 8]
    assert OrderedSet([1]) <= s and s.issubset([1, 2, 3, 4]) and s.isdisjoint([9])
    s.update([8], [9])
    s.discard(100)
    assert s.pop() == 9 and list(reversed(s)) == [8, 2, 1, 3]
    with pytest.raises(KeyError):
        s.remove(99)
    with pytest.raises(KeyError):
        OrderedSet().pop()
    with pytest.raises(TypeError, match="unhashable"):
        hash(s)
    s.intersection_update([8, 2])
    assert list(s) == [2, 8] and pickle.loads(pickle.dumps(s)) == s
    assert list(s.symmetric_difference([2, 4])) == [8, 4]


def test_order_survives_copies():
    s = OrderedSet("zebra")
    for other in (s.copy(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert other == s and list(other) == list("zebra") and other is not s
    s.add("z")
    assert list(s) == list("zebra")
    s.discard("z")
    s.add("z")
    assert list(s) == list("ebraz")


def test_differences():
    s = OrderedSet([5, 1, 4, 2])
    s.difference_update([1], [2, 9])
    assert list(s) == [5, 4]
    assert list(s.difference([4])) == [5] and not s.intersection([1])
    assert s.issuperset([4]) and not s.issuperset([7])
    s.clear()
    assert len(s) == 0 and repr(s) == "OrderedSet([])"
