"""Values that are computed when they are first asked for."""
import pytest

from flambeau.utils._thunk import Thunk


def test_computed_once():
    calls = []
    thunk = Thunk(lambda: calls.append(1) or [3])
    assert not calls
    assert thunk.force() is thunk.force() and calls == [1]


def test_an_error_is_no_value():
    attempts = iter([ZeroDivisionError, None])

    def compute():
        error = next(attempts)
        if error:
            raise error
        return 5
    thunk = Thunk(compute)
    with pytest.raises(ZeroDivisionError):
        thunk.force()
    assert thunk.force() == 5
