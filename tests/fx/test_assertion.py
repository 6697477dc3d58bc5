"""`torch._assert`."""
import pytest

import flambeau as torch
from flambeau import fx


def test_it_asserts():
    assert torch._assert(True, "fine") is None
    assert torch._assert(torch.tensor(3), "fine") is None
    with pytest.raises(AssertionError, match=r"^no values$"):
        torch._assert(torch.tensor(0.0), "no values")


def test_tracing_records_it():
    def program(x):
        torch._assert(x.sum() > 0, "positive")
        return x
    traced = fx.symbolic_trace(program)
    call, = traced.graph.find_nodes(op="call_function", target=torch._assert)
    assert call.args[1] == "positive" and call.is_impure()
    assert not traced.graph.eliminate_dead_code()
    with pytest.raises(AssertionError, match="positive"):
        traced(-torch.ones(2))
