"""Functions that a backend compiles, and graphs of functions."""
import pytest

import flambeau as torch
from flambeau._dynamo import eval_frame


def f(x):
    return x.sin() + 1


def test_a_backend_as_decorator():
    x = torch.ones(2)
    assert torch.equal(eval_frame.optimize("eager")(f)(x), f(x))
    assert torch.equal(eval_frame.optimize_assert("eager")(f)(x), f(x))


def test_the_function_inside():
    assert eval_frame.innermost_fn(f) is f
    assert eval_frame.innermost_fn(torch.compile(f, backend="eager")) is f


def test_the_graph_of_a_function():
    found = eval_frame.export(f)(torch.ones(2))
    x = torch.randn(2)
    assert torch.equal(found.graph_module(x), f(x))
    module, guards = found
    assert module is found.graph_module and guards == found.guards
    with pytest.warns(FutureWarning) if torch.__name__ == "torch" else _nothing():
        assert torch.equal(eval_frame.export(f, torch.ones(2)).graph_module(x), f(x))


def _nothing():
    import contextlib
    return contextlib.nullcontext()


def test_forgetting():
    compiled = torch.compile(f, backend="eager")
    assert eval_frame.remove_from_cache(f) is None
    assert torch.equal(compiled(torch.ones(1)), f(torch.ones(1)))
