"""Signatures that are said where a function passes on what it is given."""
from inspect import signature

import pytest

from flambeau._support.signatures import ANY_ARGUMENTS, extended, refusing, signed


def call(a, b=1, *rest, c, d=2):
    return a, b, rest, c, d


def test_parameters_are_left_out_renamed_and_added():
    assert str(extended(call)) == "(a, b=1, *rest, c, d=2)"
    assert str(extended(call, without=("rest", "d"))) == "(a, b=1, *, c)"
    assert str(extended(call, renamed={"a": "x"}, defaults={"b": 5})) == "(x, b=5, *rest, c, d=2)"
    assert str(extended(call, without=("rest",), e=3)) == "(a, b=1, e=3, *, c, d=2)"


def test_functions_show_what_they_are_told_to():
    @signed(extended(call, without=("rest",)))
    def other(*args, **kwargs):
        return call(*args, **kwargs)

    assert str(signature(other)) == "(a, b=1, *, c, d=2)"
    assert other(1, c=3) == (1, 1, (), 3, 2)
    assert str(ANY_ARGUMENTS) == "(*args, **kwargs)"


def test_functions_that_do_nothing_refuse_in_words_of_python():
    shown = signature(lambda self, a, b=1, *, c, **more: None)
    refuse = refusing(shown, "Thing.__init__")
    assert refuse(0, 1, c=2, d=3) is refuse(0, 1, 2, c=3) is None
    with pytest.raises(TypeError, match=r"^Thing.__init__\(\) missing 1 required positional"):
        refuse(0, c=1)
    with pytest.raises(TypeError, match=r"takes from 2 to 3 positional arguments but 4"):
        refuse(0, 1, 2, 3, c=1)
