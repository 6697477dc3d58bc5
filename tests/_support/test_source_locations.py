"""Where something happened, with the extension and without."""

import sys

import pytest

import flambeau as torch
from flambeau._support import source_locations as places

KINDS = [(places._Place, places._read_place)]
if places.native is not None:
    KINDS.append((places.native.Place, places.native.read_place))


@pytest.mark.parametrize("make, read", KINDS)
def test_a_place_is_a_line_of_the_program(make, read):
    code, line = read(make())
    assert code is test_a_place_is_a_line_of_the_program.__code__
    assert line == sys._getframe().f_lineno - 2


@pytest.mark.parametrize("make, read", KINDS)
def test_the_place_of_another_is_the_same(make, read):
    first = make()
    assert read(make(first)) == read(first)


@pytest.mark.parametrize("make, read", KINDS)
def test_what_is_no_place_has_none(make, read):
    assert read(None) is None


@pytest.mark.parametrize("bump", [places._bump, places.bump])
def test_writes_are_counted_for_all_tensors_of_a_memory(bump):
    x = torch.zeros(3)
    view, version = x[1:], x._version
    bump(x)
    bump(view)
    assert x._version == view._version == version + 2
    assert places.counter_of(x) is places.counter_of(view)


def test_several_tensors_at_once():
    x, y = torch.zeros(2), torch.zeros(2)
    places.mark_written([x, y, y])
    assert (x._version, y._version) == (1, 2)
