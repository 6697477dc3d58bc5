"""The mode that writes down the ops that run."""
import pytest

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import (
    PythonKeyTracer,
    make_fx,
)

aten = torch.ops.aten
X = torch.arange(3.0)


def targets(graph):
    return [n.target for n in graph.graph.nodes if n.op == "call_function"]


def test_a_table_holds_for_the_inside():
    def program(x):
        return torch.nn.functional.silu(x)
    table = {aten.silu.default: lambda x: x * x.sigmoid()}
    inside = make_fx(program, decomposition_table=table)(X)
    assert targets(inside) == [aten.sigmoid.default, aten.mul.Tensor]
    assert targets(make_fx(program)(X)) == [aten.silu.default]


def test_tensors_from_outside_are_attributes():
    weight, other = torch.nn.Parameter(torch.ones(3)), torch.tensor([1.0, 2.0, 3.0])
    graph = make_fx(lambda x: x * weight + other)(X)
    names = [n.target for n in graph.graph.find_nodes(op="get_attr")]
    assert names == ["_param_constant0", "_tensor_constant0"]
    assert graph._param_constant0 is weight
    torch.testing.assert_close(graph(X), X + other)


def test_what_is_written_to_is_known_by_the_write():
    def program(x):
        y = x.clone()
        y.mul_(2)
        y[0] = 5
        return y + 1
    graph = make_fx(program)(X)
    assert graph(X).tolist() == program(X).tolist() == [6, 3, 5]
    assert aten.mul_.Tensor in targets(graph)


def test_numbers_of_small_constants_are_known():
    def program(x):
        n = torch.tensor(2) * 3
        return x * n.item() if n.item() == 6 else x
    assert make_fx(program)(X)(X).tolist() == [0, 6, 12]
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor with "
                                           r"aten\._local_scalar_dense\.default - erroring out!"):
        make_fx(lambda x: x * x.sum().item())(X)
    found = make_fx(lambda x: x * x.sum().item(), _error_on_data_dependent_ops=False)(X)
    assert found(X).tolist() == [0, 3, 6]


def test_the_tracer_opens_modules():
    tracer = PythonKeyTracer()
    assert tracer.call_module(torch.nn.ReLU(), lambda x, y: x + y, (1,), {"y": 2}) == 3
    assert tracer.getattr("x", 7, {}) == 7 and tracer.unwrap_proxy(5) == 5
