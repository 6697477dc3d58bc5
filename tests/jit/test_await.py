"""Calls that are made when their result is first waited for."""
from flambeau.jit._await import _awaitable, _awaitable_nowait, _awaitable_wait


def test_the_call_is_made_once_and_late():
    calls = []

    def count(a, b):
        calls.append((a, b))
        return a + b
    later = _awaitable(count, 1, 2)
    assert not calls and not later.is_nowait()
    assert later.fn() is count and later.args() == (1, 2)
    assert _awaitable_wait(later) == 3 == later.wait() and calls == [(1, 2)]


def test_values_that_are_there():
    known = _awaitable_nowait([1, 2])
    assert known.is_nowait() and known.wait() == [1, 2]
    assert known.count(2) == 1                  # attributes are those of the value
