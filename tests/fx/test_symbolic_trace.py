"""Tracing: fixed arguments, containers, and what cannot be traced."""
import math

import pytest

import flambeau
from flambeau import fx, nn

CONCRETE = """
def forward(self, x, y_1):
    eq = y_1 == True;  y_1 = None
    _assert = torch._assert(eq, 'y has been specialized to have value True but got another value');\
  eq = _assert = None
    return x
"""


def test_fixed_arguments():
    module = fx.symbolic_trace(lambda x, y: x if y else -x, concrete_args={"y": True})
    assert module.code.strip() == CONCRETE.strip()
    assert module(3, True) == 3
    with pytest.raises(AssertionError, match="specialized to have value True"):
        module(3, False)


def test_containers_of_modules_are_opened():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert module.code.strip() == """
def forward(self, input):
    input_1 = input
    _0 = getattr(self, "0")(input_1);  input_1 = None
    _1 = getattr(self, "1")(_0);  _0 = None
    return _1
    """.strip()
    assert str(module).startswith("Sequential(\n  (0): Linear(in_features=2")
    assert str(module).endswith("\n# To see more debug info, please use "
                                "`graph_module.print_readable()`")
    assert "class Sequential(torch.nn.Module):\n    def forward" in module.print_readable(False)


@pytest.mark.parametrize(("program", "error", "message"), [
    (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "inputs to control flow"),
    (lambda x: [y for y in x], fx.proxy.TraceError, "Proxy object cannot be iterated"),  # noqa: C416
    (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
    (lambda x: exec("x[0] = 3", {"x": x}), TypeError, "does not support item assignment"),
])
def test_what_cannot_be_traced(program, error, message):
    with pytest.raises(error, match=message):
        fx.symbolic_trace(program)


def test_nothing_is_left_behind():
    from flambeau.core import modes
    call, before = nn.Module.__call__, list(modes.interceptors)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert nn.Module.__call__ is call and modes.interceptors == before and math.sqrt(4) == 2


def test_unpacking():
    module = fx.symbolic_trace(lambda x: (lambda a, b: a + b)(*_two(x)))
    assert flambeau.equal(module(flambeau.tensor([1.0, 2.0])), flambeau.tensor(3.0))


def _two(x):
    a, b = x
    return a, b
