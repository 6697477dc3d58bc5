"""Helpers for annotations."""
import pytest

from flambeau.utils._typing_utils import copy_method_params, not_none


@pytest.mark.parametrize("value", [0, "", [], False])
def test_what_is_not_none(value):
    assert not_none(value) is value
    with pytest.raises(TypeError, match="value was None when it should not be"):
        not_none(None)


def test_a_signature_is_copied_for_type_checkers_only():
    def other(a: int, b: str) -> None: ...

    @copy_method_params(other)
    def function(*args, **kwargs):
        return args, kwargs
    assert function(1, b="x") == ((1,), {"b": "x"})
