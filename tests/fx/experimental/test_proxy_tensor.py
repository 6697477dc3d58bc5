"""make_fx: graphs below autograd, for one size or for any, and what cannot be traced."""
from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    make_fx,
)
from flambeau.nn import functional as F

X = torch.arange(12.0).view(3, 4)
DATA = Path(__file__).parents[2] / "data"
spec = importlib.util.spec_from_file_location("record_traced_programs",
                                              DATA / "record_traced_programs.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)


def train(x, w):
    y = (x @ w).tanh().sum()
    grad, = torch.autograd.grad(y, w)
    return w - 0.1 * grad


FUNCTIONS = [
    (lambda x: (x.sin(), [x.view(-1)]), (X,)),
    (lambda x, t: F.cross_entropy(x, t), (X, torch.tensor([0, 1, 2]))),
    (lambda x: F.layer_norm(x, (4,)).t().contiguous().unsqueeze(0).expand(2, 4, 3), (X,)),
    (lambda x: x[0, 1:3] + torch.tensor([1.0, 2.0]), (X,)),
    (lambda x: x.clone().add_(1).mul_(x), (X,)),
    (lambda x: F.max_pool2d(F.relu(F.conv2d(x, x)), 1), (X.view(1, 1, 3, 4),)),
    (lambda x: {"a": x.max(1)[0], "b": x.split(2)}, (X,)),
    (torch.vmap(lambda x: x.sum() * x), (X,)),
    (torch.func.grad(lambda x: (x ** 2).sum()), (X,)),
    (train, (X, torch.ones(4, 2, requires_grad=True))),
    (nn.Sequential(nn.Linear(4, 3), nn.GELU()), (X,)),
    (lambda d: d["a"] * d["b"][0], ({"a": X, "b": [X]},)),
]


@pytest.mark.parametrize(("function", "args"), FUNCTIONS)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_graphs_compute_the_function(function, args, mode):
    options = {"_allow_non_fake_inputs": True} if mode != "real" else {}
    graph = make_fx(function, tracing_mode=mode, **options)(*args)
    torch.testing.assert_close(graph(*args), function(*args))
    assert all(isinstance(n.target, torch._ops.OpOverload) or n.target.__module__ == "_operator"
               for n in graph.graph.nodes if n.op == "call_function")
    assert graph.graph.find_nodes(op="placeholder")[0].meta["val"].shape == (
        X.shape if X.shape == getattr(args[0], "shape", X.shape) else args[0].shape)


def test_code():
    graph = make_fx(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]))(X)
    assert graph.code.strip() == """\
def forward(self, x_1):
    _tensor_constant0 = self._tensor_constant0
    lift_fresh_copy = torch.ops.aten.lift_fresh_copy.default(_tensor_constant0);  \
_tensor_constant0 = None
    add = torch.ops.aten.add.Tensor(x_1, lift_fresh_copy);  x_1 = lift_fresh_copy = None
    return add"""
    graph = make_fx(nn.Linear(4, 2))(X)
    assert graph.code.strip() == """\
def forward(self, arg0_1):
    _param_constant0 = self._param_constant0
    t = torch.ops.aten.t.default(_param_constant0);  _param_constant0 = None
    _param_constant1 = self._param_constant1
    addmm = torch.ops.aten.addmm.default(_param_constant1, arg0_1, t);  \
_param_constant1 = arg0_1 = t = None
    return addmm"""
    assert "f32[3, 2]" in graph.print_readable(print_output=False)


def test_above_autograd():
    graph = make_fx(lambda x: F.linear(F.silu(x), x), pre_dispatch=True)(X)
    assert [n.target for n in graph.graph.nodes if n.op == "call_function"] == [
        torch.ops.aten.silu.default, torch.ops.aten.linear.default]


def test_decompositions():
    table = {torch.ops.aten._softmax.default: lambda x, dim, half: x.exp() / x.exp().sum(dim)}
    graph = make_fx(lambda x: F.softmax(x, 0), decomposition_table=table)(X)
    torch.testing.assert_close(graph(X), F.softmax(X, 0))
    assert not graph.graph.find_nodes(op="call_function", target=torch.ops.aten._softmax.default)


@pytest.mark.parametrize(("function", "other"), [
    (lambda x: x.reshape(-1) * x.shape[0], torch.rand(5, 2)),
    (lambda x: torch.zeros(x.shape[0] * 2, x.shape[1]) + 1, torch.rand(6, 3)),
    (lambda x: torch.cat([x, x]).view(x.shape[0], -1), torch.rand(7, 5)),
    (lambda x: x[:, : x.shape[1] // 2].sum(), torch.rand(2, 9)),
])
def test_sizes_follow_the_inputs(function, other):
    graph = make_fx(function, tracing_mode="symbolic")(torch.rand(3, 4))
    torch.testing.assert_close(graph(other), function(other))
    assert graph.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_size.int)


def test_values_stay_unknown():
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(X)
    graph = make_fx(lambda x: x * torch.tensor(3.0).item())(X)
    assert "mul.Tensor(x_1, 3.0)" in graph.code


def test_modes():
    seen = []

    def f(x):
        seen.append(get_proxy_mode() is not None)
        with disable_proxy_modes_tracing():
            seen.append(get_proxy_mode() is not None)
            y = x + 1
        return y * x
    graph = make_fx(f)(X)
    assert seen == [True, False] and "add" not in graph.code
    assert get_proxy_mode() is None


def test_modules_of_nodes():
    """They are named for what `torch.compile` has wrapped."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.act = nn.Linear(4, 4), nn.ReLU()

        def forward(self, x):
            return self.act(self.first(x))

    class Compiled(nn.Module):
        def __init__(self, model):
            super().__init__()
            self._orig_mod = model

        def forward(self, x):
            return self._orig_mod(x)

    def relu_of(model):
        graph = make_fx(model, record_module_stack=True)(X).graph
        return graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default)[0]
    assert "nn_module_stack" not in relu_of(Model()).meta
    assert list(relu_of(Compiled(Model())).meta["nn_module_stack"]) == ["", "act"]


def test_a_constant_that_the_program_writes_to_stays_as_it_was():
    def counted(x):
        count = torch.tensor(3)
        count.add_(1)
        return x + count
    graph = make_fx(counted)(torch.zeros(2))
    assert [graph(torch.zeros(2)).tolist() for _ in range(2)] == [[4, 4], [4, 4]]


def test_gradients_start_from_ones_of_the_result():
    """And powers have the exponents that PyTorch computes with."""
    code = make_fx(torch.func.grad(lambda x: (x ** 3).sum()))(torch.ones(3)).code
    calls = [line.split(" = ", 1)[1].split(";")[0] for line in code.splitlines() if "aten" in line]
    assert [call.removeprefix("torch.ops.aten.") for call in calls] == [
        "pow.Tensor_Scalar(x_1, 3)", "sum.default(pow_1)",
        "ones_like.default(sum_1, pin_memory = False, memory_format = torch.preserve_format)",
        "expand.default(ones_like, [3])", "pow.Tensor_Scalar(x_1, 2.0)", "mul.Scalar(pow_2, 3.0)",
        "mul.Tensor(expand, mul)"]


TRACED = json.loads((DATA / "traced_programs.json").read_text())


@pytest.mark.parametrize("program", TRACED)
def test_the_code_of_programs_is_as_recorded(program):
    assert record.code(torch, make_fx, program) == TRACED[program]


def test_fake_and_real_tensors_give_one_graph():
    """Of reshapes that are views, of results saved for derivatives, and of those of slices."""
    x, target = torch.ones(1, 2, 3), torch.tensor([1])
    programs = [
        lambda x: x.transpose(-1, -2).expand(1, 3, 2).reshape(3, 2),
        torch.func.grad(lambda x: torch.nn.functional.cross_entropy(x.sum(1).tanh(), target)),
        torch.func.vmap(torch.func.grad(lambda row: row.sin().sum()))]
    for program in programs:
        real, fake = [make_fx(program, tracing_mode=mode, _allow_non_fake_inputs=True)(x)
                      for mode in ("real", "fake")]
        assert real.code == fake.code
