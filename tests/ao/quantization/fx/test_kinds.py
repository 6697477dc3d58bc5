"""What a step of a graph is to quantisation."""
import operator

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.quantization.fx.kinds import kind_of, only_user, relu_behind, type_of

F = nn.functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.relu, self.table = nn.Linear(2, 2), nn.ReLU(), nn.Embedding(2, 2)
        self.sigmoid, self.lost = nn.Sigmoid(), nn.Softshrink()

    def forward(self, x, i):
        y = self.relu(self.lin(x) + self.table(i))
        y = F.relu(F.linear(y, self.lin.weight))
        y = self.lost(self.sigmoid(torch.cat([y, y])).view(2, 2))
        return F.elu(y) - 1


MODULES = dict(Net().named_modules())
NODES = {n.name: n for n in torch.fx.symbolic_trace(Net()).graph.nodes}


@pytest.mark.parametrize("name, kind", [
    ("lin", "module"), ("table", "table"), ("relu", "shared"), ("add", "binary"),
    ("linear", "weighted"), ("cat", "shared"), ("sigmoid", "fixed"), ("view", "shared"),
    ("elu", "function"), ("sub", None), ("lost", None), ("x", None), ("output", None),
    ("lin_weight", None)])
def test_kinds(name, kind):
    assert kind_of(NODES[name], MODULES) == kind


def test_types():
    assert type_of(NODES["lin"], MODULES) is nn.Linear and type_of(NODES["view"], {}) == "view"
    assert type_of(NODES["add"], {}) is operator.add


def test_a_relu_behind():
    assert relu_behind(NODES["add"], MODULES) is NODES["relu"]
    assert relu_behind(NODES["linear"], MODULES) is NODES["relu_1"]
    assert relu_behind(NODES["elu"], MODULES) is None
    assert only_user(NODES["relu_1"]).name == "cat" and only_user(NODES["output"]) is None
