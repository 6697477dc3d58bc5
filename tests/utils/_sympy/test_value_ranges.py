"""Ranges of numbers."""
import pytest

from flambeau.utils._sympy.value_ranges import ValueRanges


def test_members():
    r = ValueRanges(1, 4)
    assert all(x in r for x in (1, 3, 4)) and 0 not in r and 5 not in r
    assert not r.is_singleton() and ValueRanges(2, 2).is_singleton()


def test_intersections_and_hulls():
    a, b = ValueRanges(1, 4), ValueRanges(3, 9)
    assert a & b == ValueRanges(3, 4) and a | b == ValueRanges(1, 9)
    assert (a & b).issubset(a) and (a & b).issubset(b) and not a.issubset(b)


def test_empty_ranges_are_refused():
    with pytest.raises(Exception, match="Invalid ranges"):
        ValueRanges(3, 2)
    with pytest.raises(Exception, match="Invalid ranges"):
        ValueRanges(0, 1) & ValueRanges(2, 3)
