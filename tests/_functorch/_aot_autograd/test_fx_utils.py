"""Finding inputs and gradients in joint graphs."""
from contextlib import ExitStack

import flambeau as torch
from flambeau import nn
from flambeau._functorch._aot_autograd import fx_utils
from flambeau._functorch.aot_autograd import aot_export_joint_with_descriptors


def joint():
    layer = nn.Linear(3, 2)
    x = torch.ones(4, 3, requires_grad=True)
    with ExitStack() as stack:
        return aot_export_joint_with_descriptors(stack, layer, (x,)).graph_module.graph


def test_every_input_and_output_says_what_it_is():
    graph = joint()
    assert [n.meta["desc"].expr() for n in graph.find_nodes(op="placeholder")] == [
        "self.get_parameter('weight')", "self.get_parameter('bias')", "args[0]",
        "__output_tangent(output[0])"]
    assert [what.expr() for what in graph.output_node().meta["desc"]] == [
        "output[0]", "__grad(self.get_parameter('weight'))", "__grad(self.get_parameter('bias'))",
        "__grad(args[0])"]


def test_parameters_and_their_gradients():
    found = fx_utils.get_param_and_grad_nodes(joint())
    assert [desc.target for desc in found] == ["weight", "bias"]
    for (node, grad), shape in zip(found.values(), ([2, 3], [2])):
        assert node.op == "placeholder" and list(node.meta["val"].shape) == shape
        assert list(grad.meta["val"].shape) == shape


def test_inputs_and_their_gradients():
    (desc, (node, grad)), = fx_utils.get_plain_input_and_grad_nodes(joint()).items()
    assert desc.idx == 0 and node.op == "placeholder"
    assert list(grad.meta["val"].shape) == [4, 3]
