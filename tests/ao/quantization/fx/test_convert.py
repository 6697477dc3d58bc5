"""Graphs of quantised ops."""
import io

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized
from flambeau.ao.quantization import (
    QConfigMapping,
    default_dynamic_qconfig,
    default_qconfig,
)
from flambeau.ao.quantization.fx.custom_config import PrepareCustomConfig
from flambeau.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx

F = nn.functional
MAPPING = QConfigMapping().set_global(default_qconfig)


def converted(net, *inputs, mapping=MAPPING, custom=None, convert=convert_fx):
    prepared = prepare_fx(net.eval(), mapping, inputs, custom)
    prepared(*inputs)
    return convert(prepared)




def steps(graph):
    return [n.target if isinstance(n.target, str) else n.target.__name__.partition(".")[0]
            for n in graph.graph.nodes if n.op.startswith("call")]


class Lowered(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.w = name, nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        if self.name == "add":
            return x + x
        if self.name == "mul":
            return x * 0.5
        if self.name == "add_relu":
            return F.relu(x + x)
        if self.name == "linear":
            return F.linear(x, self.w)
        if self.name == "linear_relu":
            return F.relu(F.linear(x, self.w))
        return F.hardswish(x)


@pytest.mark.parametrize("name", ["add", "mul", "add_relu", "linear", "linear_relu", "hardswish"])
def test_functions_become_those_of_quantised_tensors(name):
    net, x = Lowered(name), torch.randn(6, 4)
    found = converted(net, x)
    assert steps(found) == ["quantize_per_tensor", name, "dequantize"]
    torch.testing.assert_close(found(x), net(x).detach(), atol=0.15, rtol=0.05)


def test_a_module_becomes_the_quantised_one():
    net, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Flatten()), torch.randn(6, 4)
    found = converted(net, x)
    assert found.get_submodule("0")._get_name() == "QuantizedLinearReLU"
    torch.testing.assert_close(found(x), net(x).detach(), atol=0.1, rtol=0.05)


def test_as_a_reference():
    net, x = nn.Sequential(nn.Linear(4, 3)), torch.randn(6, 4)
    found = converted(net, x, convert=convert_to_reference_fx)
    assert steps(found) == ["quantize_per_tensor", "dequantize", "0", "quantize_per_tensor",
                            "dequantize"]
    assert found.get_submodule("0")._get_name() == "QuantizedLinear(Reference)"
    torch.testing.assert_close(found(x), converted(net, x)(x), atol=0.05, rtol=0)


def test_what_comes_in_can_be_quantised_as_it_comes():
    net, x = nn.Sequential(nn.Linear(4, 3)), torch.randn(6, 4)
    found = converted(net, x, mapping=QConfigMapping().set_global(default_dynamic_qconfig))
    assert found.get_submodule("0")._get_name() == "DynamicQuantizedLinear"
    assert steps(found) == ["0"]


def test_results_can_stay_quantised():
    custom = PrepareCustomConfig().set_output_quantized_indexes([0])
    found = converted(nn.Sequential(nn.Linear(4, 3)), torch.randn(6, 4), custom=custom)
    assert found(torch.randn(2, 4)).is_quantized


def test_state_goes_over():
    x = torch.randn(6, 4)
    first, other = converted(Lowered("linear"), x), converted(Lowered("linear"), 3 * x)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=False))
    assert torch.equal(other(x), first(x))
    assert isinstance(converted(nn.Sequential(nn.Linear(4, 4)), x).get_submodule("0"),
                      quantized.Linear)
