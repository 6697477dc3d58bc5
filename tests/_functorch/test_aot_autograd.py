"""Joint graphs, cut in two: the passes compute what autograd does."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._functorch import config
from flambeau._functorch.aot_autograd import (
    aot_compile_joint_with_descriptors,
    aot_export_joint_with_descriptors,
    aot_function,
    aot_module,
    make_boxed_func,
)
from flambeau._functorch.partitioners import (
    _extract_graph_with_inputs_outputs,
    get_default_op_list,
    has_recomputable_ops,
    has_recomputable_rng_ops,
)
from flambeau.fx.experimental.proxy_tensor import make_fx


def several(x, w):
    return {"y": (x @ w).tanh().sum(), "z": [x * 2, x.detach() > 0]}


@pytest.mark.parametrize("boxed", [False, True])
def test_gradients(boxed):
    graphs = []

    def compiler(gm, inputs):
        graphs.append(gm)
        return make_boxed_func(gm.forward) if boxed else gm
    x, w = (torch.rand(3, 3, requires_grad=True) for _ in range(2))
    compiled = aot_function(several, compiler)
    for _ in range(2):
        found, expected = compiled(x, w), several(x, w)
        torch.testing.assert_close(found, expected)
        mine = torch.autograd.grad(found["y"] + found["z"][0].sum(), (x, w))
        theirs = torch.autograd.grad(expected["y"] + expected["z"][0].sum(), (x, w))
        torch.testing.assert_close(mine, theirs)
    assert len(graphs) == 2
    assert not any("tanh.default" in str(n.target) for n in graphs[1].graph.nodes)
    compiled(torch.rand(2, 3), w)
    assert len(graphs) == 4


def test_modules():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    x = torch.rand(5, 4)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    aot_module(model, lambda gm, _: gm)(x).sum().backward()
    torch.testing.assert_close([p.grad for p in model.parameters()], expected)
    joint = aot_export_joint_with_descriptors(None, model, (x,))
    assert joint.params_spec == [n for n, _ in model.named_parameters()]
    model.zero_grad()
    run = aot_compile_joint_with_descriptors(joint)
    run(*model.parameters(), x).sum().backward()
    torch.testing.assert_close([p.grad for p in model.parameters()], expected)


def test_parts_of_graphs():
    graph = make_fx(lambda x: x.sin().cos())(torch.ones(2))
    nodes = list(graph.graph.nodes)
    part = _extract_graph_with_inputs_outputs(graph.graph, [nodes[1]], [nodes[2]])
    assert [n.name for n in part.nodes if n.op == "call_function"] == ["cos"]
    with pytest.raises(AssertionError, match="was invalid, but is output"):
        _extract_graph_with_inputs_outputs(graph.graph, [nodes[2]], [nodes[1]])
    assert not has_recomputable_ops(graph) and not has_recomputable_rng_ops(graph)
    assert torch.ops.aten.sin in get_default_op_list().fusible_ops


def test_switches():
    with config.patch(activation_memory_budget=0.5):
        assert config.activation_memory_budget == 0.5
    with config.patch({"cse": False}):
        assert not config.cse
    assert config.cse and config.activation_memory_budget == 1.0
    with pytest.raises(AttributeError, match="does not exist"), config.patch(nothing=1):
        pass
