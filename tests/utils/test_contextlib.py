import contextlib

import pytest

import flambeau
from flambeau.utils._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    context_decorator,
)


def test_a_factory_is_called_and_a_context_entered_at_every_call():
    seen = []

    @contextlib.contextmanager
    def make():
        seen.append("in")
        yield
        seen.append("out")

    class Context:
        def __enter__(self):
            seen.append("enter")

        def __exit__(self, *exception):
            seen.append("exit")

    for context, expected in [(make, ["in", "out"]), (Context(), ["enter", "exit"])]:
        function = context_decorator(context, lambda x: x + 1)
        assert [function(1), function(2)] == [2, 3] and seen == expected * 2
        seen.clear()


def test_a_context_that_can_be_called_is_ambiguous():
    with pytest.raises(AssertionError, match="both callable and also a valid context manager"):
        context_decorator(flambeau.no_grad(), len)


def test_a_context_without_parameters_decorates_without_parentheses():
    seen = []

    class Context(_NoParamDecoratorContextManager):
        def __init__(self):
            self.word = "in"

        def __enter__(self):
            seen.append(self.word)

        def __exit__(self, *exception):
            seen.append("out")

    @Context
    def function():
        return 5

    assert function() == 5 and seen == ["in", "out"]
    assert isinstance(flambeau.no_grad(), _NoParamDecoratorContextManager)
    assert isinstance(flambeau.set_grad_enabled(True), _DecoratorContextManager)
