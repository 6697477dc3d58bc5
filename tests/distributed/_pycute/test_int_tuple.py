"""Nested tuples of integers."""
from __future__ import annotations

import itertools

import pytest

from flambeau.distributed._pycute import int_tuple as t

SHAPE = (2, (3, 4))


def test_forms():
    assert t.flatten(((1, 2), 3, ((4,),))) == (1, 2, 3, 4) and t.flatten(5) == (5,)
    assert t.as_tuple(3) == (3,) and t.as_tuple((3,)) == (3,)
    assert t.match_structure((1, (2, 3)), (4, (5, 6))) and t.match_structure(1, 2)
    for other in (4, (4, 5), (4, (5, 6, 7)), ((4, 5), 6)):
        assert not t.match_structure((1, (2, 3)), other)
    assert t.is_int(3) and not t.is_int((3,)) and t.is_tuple(()) and not t.is_tuple([1])


def test_numbers():
    assert t.product(SHAPE) == 24 and t.product(()) == 1 and t.tuple_max((1, (7, 3))) == 7
    assert t.inner_product((1, (2, 3)), (4, (5, 6))) == 32
    assert [t.signum(n) for n in (-3, 0, 9)] == [-1, 0, 1]
    assert t.elem_scale((2, (3, 4)), (5, (6, 7))) == (10, (18, 28))
    assert t.elem_scale((2, 3), (4, (5, 2))) == (8, 30)


@pytest.mark.parametrize(("shape", "strides"), [
    ((2, 3, 4), (12, 4, 1)), (SHAPE, (12, (4, 1))), (5, 1), ((), ()), ((1, 1), (1, 1))])
def test_strides(shape, strides):
    assert t.suffix_product(shape) == strides


def test_strides_that_begin_elsewhere():
    assert t.suffix_product((2, 3), 10) == (30, 10)
    assert t.suffix_product(((2, 3), 4), (1, 5)) == ((3, 1), 5)


@pytest.mark.parametrize(("shape", "by", "found"), [
    (12, 3, 4), (3, 12, 1), ((3, 4), 6, (1, 2)), ((3, 4), 3, (1, 4)), ((6, 4), (2, 2), (3, 2))])
def test_division(shape, by, found):
    assert t.shape_div(shape, by) == found


def test_division_that_has_a_rest():
    with pytest.raises(AssertionError):
        t.shape_div(7, 2)


@pytest.mark.parametrize("shape", [SHAPE, (2, 3, 4), ((2, 2), (3, 2))])
def test_coordinates(shape):
    places = [range(n) for n in t.flatten(shape)]
    flat = list(itertools.product(*places))
    for number in range(t.product(shape)):
        place = t.idx2crd(number, shape)
        assert t.flatten(place) == flat[number] and t.crd2idx(place, shape) == number
        assert t.crd2idx(number, shape) == number           # a number is a coordinate as well
        assert t.crd2crd(place, t.product(shape), shape) == number
        assert t.crd2crd(number, shape) == place
    assert t.crd2idx(None, shape) == 0


def test_other_strides():
    assert t.crd2idx((1, 2), (2, 4), (1, 2)) == 5 and t.idx2crd(5, (2, 4), (1, 2)) == (1, 2)
    assert t.crd2idx((1, None), (2, 4)) == 4


def test_what_is_free():
    assert t.slice_((None, (None, 1)), (3, (4, 5))) == (3, 4)
    assert t.slice_(None, (3, 4)) == ((3, 4),) and t.slice_(2, (3, 4)) == ()
    assert t.has_none((1, (None, 2))) and not t.has_none((1, (2,))) and t.has_none(None)
