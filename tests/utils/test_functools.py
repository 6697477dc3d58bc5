"""Caching of methods."""
import gc
import weakref

import pytest

from flambeau.utils._functools import cache_method


class Squares:
    def __init__(self):
        self.calls = []

    @cache_method
    def of(self, x, y=0):
        """The square."""
        self.calls.append((x, y))
        return x * x + y


def test_results_are_kept_by_object_and_arguments():
    first, second = Squares(), Squares()
    assert [first.of(3), first.of(3), first.of(3, 1), second.of(3)] == [9, 9, 10, 9]
    assert first.calls == [(3, 0), (3, 1)] and second.calls == [(3, 0)]
    assert Squares.of.__doc__ == "The square."
    with pytest.raises(AssertionError):
        first.of(x=3)


def test_results_go_with_the_object():
    squares = Squares()
    squares.of(3)
    seen = weakref.ref(squares)
    del squares
    gc.collect()
    assert seen() is None
