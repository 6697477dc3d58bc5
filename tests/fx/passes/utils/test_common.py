"""Parts of graphs as modules, and graphs that are the same."""
import pytest

import flambeau as torch
from flambeau import fx, nn
from flambeau.fx.passes.utils.common import HolderModule, compare_graphs, lift_subgraph_as_module


def test_modules_by_name():
    inner = nn.ReLU()
    assert dict(HolderModule({"a": inner}).named_children()) == {"a": inner}
    assert not list(HolderModule({}).children())


@pytest.mark.parametrize("prefix", ["", "part"])
def test_a_part_keeps_what_it_names(prefix):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))
            self.shift = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.inner[0](x) + self.shift
    net = Net()
    traced = fx.symbolic_trace(net)
    part, names = lift_subgraph_as_module(traced, traced.graph, prefix, "Part")
    assert names == {"inner.0": f"{prefix}.inner.0", "shift": f"{prefix}.shift"}
    assert type(part).__name__ == "Part" and part.inner[0] is net.inner[0] \
        if isinstance(part.inner, nn.Sequential) else part.inner.get_submodule("0") is net.inner[0]
    x = torch.randn(3, 2)
    torch.testing.assert_close(part(x), net(x))


def test_graphs_are_compared():
    def graph(f):
        return fx.symbolic_trace(f).graph
    assert compare_graphs(graph(lambda x, y: torch.relu(x + y)),
                          graph(lambda a, b: torch.relu(a + b)))
    assert not compare_graphs(graph(lambda x: torch.relu(x)), graph(lambda x: torch.sigmoid(x)))
    assert not compare_graphs(graph(lambda x: x + 1), graph(lambda x: x + 2))
