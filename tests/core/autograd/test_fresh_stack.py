"""Passes inside passes run on threads of their own."""

import threading
from contextvars import ContextVar

import pytest

from flambeau.core.autograd.fresh_stack import moved_at, needs_fresh_stack, on_fresh_stack


def test_results_errors_and_variables_are_those_of_a_call():
    variable = ContextVar("variable", default=0)
    variable.set(3)
    assert on_fresh_stack(lambda a, b: (a + b, variable.get()), 60, 1, 2) == (3, 3)
    with pytest.raises(ZeroDivisionError):
        on_fresh_stack(lambda: 1 / 0, 60)


def test_what_is_set_there_stays_there():
    variable = ContextVar("variable", default=0)
    on_fresh_stack(variable.set, 60, 5)
    assert variable.get() == 0


def test_a_depth_moves_once():
    assert needs_fresh_stack(60)
    seen = on_fresh_stack(lambda: (needs_fresh_stack(60), needs_fresh_stack(120),
                                   threading.get_ident()), 60)
    assert seen == (False, True, seen[2]) and seen[2] != threading.get_ident()
    assert moved_at.get() == 0


def test_interrupts_reach_the_caller():
    def interrupt():
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        on_fresh_stack(interrupt, 60)
