"""Where observers go in a graph."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.quantization import (
    QConfigMapping,
    default_dynamic_qconfig,
    default_qconfig,
    get_default_qconfig,
    get_default_qconfig_mapping,
)
from flambeau.ao.quantization.fx.custom_config import PrepareCustomConfig
from flambeau.ao.quantization.quantize_fx import prepare_fx

X = torch.ones(1, 3)


def model():
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.Softshrink()).eval()


def steps(prepared):
    return ["watch" if "activation_post" in n.name else str(n.target)
            for n in prepared.graph.nodes if n.op.startswith("call")]


def test_before_and_behind_what_is_quantised():
    prepared = prepare_fx(model(), get_default_qconfig_mapping(), (X,))
    assert steps(prepared) == ["watch", "0", "watch", "2", "watch", "3"]
    watch = prepared.activation_post_process_0
    prepared(torch.tensor([[1.0, -2.0, 5.0]]))
    assert (watch.min_val.item(), watch.max_val.item()) == (-2, 5)


@pytest.mark.parametrize("mapping, wanted", [
    (QConfigMapping(), ["0", "2", "3"]),
    (QConfigMapping().set_module_name("2", default_qconfig), ["0", "watch", "2", "watch", "3"]),
    (QConfigMapping().set_global(default_qconfig).set_module_name("0", None),
     ["0", "watch", "2", "watch", "3"]),
    (QConfigMapping().set_object_type(nn.Linear, default_qconfig).set_object_type(
        nn.ReLU, default_qconfig).set_module_name_regex("[2-9]", None),
     ["watch", "0", "watch", "2", "3"]),
    (QConfigMapping().set_global(default_dynamic_qconfig), ["watch", "0", "watch", "2", "3"])])
def test_what_a_mapping_says(mapping, wanted):
    assert steps(prepare_fx(model(), mapping, (X,))) == wanted


def test_results_stay():
    net = model()
    x = torch.randn(5, 3)
    torch.testing.assert_close(prepare_fx(net, get_default_qconfig_mapping(), (x,))(x), net(x))


def test_modules_that_are_not_looked_into():
    class Branch(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    net = nn.Sequential(nn.Linear(3, 3), Branch()).eval()
    custom = PrepareCustomConfig().set_non_traceable_module_classes([Branch])
    prepared = prepare_fx(net, get_default_qconfig_mapping(), (X,), custom)
    assert type(prepared.get_submodule("1")) is Branch
    custom = PrepareCustomConfig().set_non_traceable_module_names(["1"])
    assert steps(prepare_fx(net, get_default_qconfig_mapping(), (X,), custom))[-1] == "1"


def test_inputs_that_come_quantised():
    custom = PrepareCustomConfig().set_input_quantized_indexes([0])
    prepared = prepare_fx(model(), QConfigMapping().set_global(get_default_qconfig()), (X,), custom)
    assert steps(prepared)[0] == "0"


def test_joined_tensors_share_an_observer():
    class Cat(nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y])
    prepared = prepare_fx(Cat().eval(), get_default_qconfig_mapping(), (X, X))
    watches = {id(getattr(prepared, n.target)) for n in prepared.graph.nodes
               if n.op == "call_module"}
    assert len(watches) == 1
