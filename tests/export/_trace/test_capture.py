"""Which calls of a program are written down."""
import operator

import pytest
from export_cases import function

import flambeau as torch
from flambeau import nn
from flambeau.export import export
from flambeau.nn import functional as F


def targets(program):
    return [str(n.target).removeprefix("aten.") for n in program.graph.nodes
            if n.op == "call_function" and n.target is not operator.getitem]


@pytest.mark.parametrize("f, wanted", [
    (lambda x: x + 1, ["add.Tensor"]), (lambda x: 1 - x, ["rsub.Scalar"]),
    (lambda x: x[0], ["select.int"]), (lambda x: x[:, 1:], ["slice.Tensor"]),
    (lambda x: x[..., None], ["unsqueeze.default"]), (lambda x: x.T, ["numpy_T.default"]),
    (lambda x: x.mT, ["mT.default"]), (lambda x: F.relu(x), ["relu.default"]),
    (lambda x: F.dropout(x, training=False), ["dropout.default"]),
    (lambda x: F.linear(x, x), ["linear.default"]),
    (lambda x: x.sum(0).exp(), ["sum.dim_IntList", "exp.default"]),
    (lambda x: torch.max(x, 0)[1], ["max.dim"]), (lambda x: x.contiguous(), []),
    (lambda x: torch.zeros(2), ["zeros.default"]), (lambda x: x.add_(1), ["add_.Tensor"])])
def test_calls(f, wanted):
    x = torch.ones(2, 2)
    program = function(f, x)
    assert targets(program) == wanted
    torch.testing.assert_close(program.module()(torch.ones(2, 2)), f(torch.ones(2, 2)))


def test_tensors_from_elsewhere_are_constants():
    c = torch.tensor([1.0, 2.0])
    program = function(lambda x: x + c, torch.ones(2))
    kinds = [spec.kind.name for spec in program.graph_signature.input_specs]
    assert kinds == ["CONSTANT_TENSOR", "USER_INPUT"]
    assert program.module()(torch.zeros(2)).tolist() == [1, 2]


def test_numbers_become_a_tensor_in_each_run():
    program = function(lambda x: torch.tensor([1.0, 2.0]).add_(x), torch.ones(2))
    module = program.module()
    for _ in range(2):
        assert module(torch.ones(2)).tolist() == [2.0, 3.0]


def test_where_steps_come_from():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner(x).sin()
    program = export(Net(), (torch.ones(1, 2),))
    linear, sin = (n for n in program.graph.nodes if n.op == "call_function")
    assert [path for path, _ in linear.meta["nn_module_stack"].values()][1:] == [
        "inner", "inner.0"]
    assert "forward" in sin.meta["stack_trace"]


def test_methods_are_put_back():
    before = torch.Tensor.__getitem__, torch.Tensor.float
    with pytest.raises(ZeroDivisionError):
        function(lambda x: x[0] * (1 / 0), torch.ones(2))
    assert (torch.Tensor.__getitem__, torch.Tensor.float) == before
