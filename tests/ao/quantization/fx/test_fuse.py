"""Modules in a row become one in the graph."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic
from flambeau.ao.quantization.fx.custom_config import FuseCustomConfig
from flambeau.ao.quantization.quantize_fx import fuse_fx


class Net(nn.Module):
    def __init__(self, relu=None):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2)
        self.bn.running_mean.fill_(0.3)
        self.bn.running_var.fill_(2)
        self.relu = relu

    def forward(self, x):
        y = self.bn(self.conv(x))
        return torch.nn.functional.relu(y) if self.relu is None else self.relu(y)


@pytest.mark.parametrize("relu", [None, nn.ReLU(), nn.ReLU(inplace=True)])
def test_a_row_of_three(relu):
    model, x = Net(relu).eval(), torch.randn(1, 1, 4, 4)
    wanted = model(x)
    fused = fuse_fx(model)
    assert type(fused.conv) is intrinsic.ConvReLU2d
    assert [n.target for n in fused.graph.nodes if n.op.startswith("call")] == ["conv"]
    torch.testing.assert_close(fused(x), wanted, atol=1e-5, rtol=1e-4)


def test_other_functions_behind_stay():
    fused = fuse_fx(Net(nn.Tanh()).eval())
    assert type(fused.conv) is nn.Conv2d
    assert [n.target for n in fused.graph.nodes if n.op == "call_module"] == ["conv", "relu"]


def test_results_that_are_used_twice_stay():
    class Twice(Net):
        def forward(self, x):
            y = self.conv(x)
            return self.bn(y) + y
    model, x = Twice().eval(), torch.randn(1, 1, 4, 4)
    fused = fuse_fx(model)
    assert type(fused.bn) is nn.BatchNorm2d and torch.equal(fused(x), model(x))


def test_attributes_can_be_kept():
    model = Net().eval()
    model.note = "kept"
    assert fuse_fx(model, FuseCustomConfig().set_preserved_attributes(["note"])).note == "kept"
    assert not hasattr(fuse_fx(model), "note")
