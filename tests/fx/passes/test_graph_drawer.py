"""Pictures of graphs; what stands for `pydot` here keeps what it is given."""
import sys
from types import ModuleType

import pytest

import flambeau
from flambeau import fx, nn
from flambeau.fx.passes.graph_drawer import FxGraphDrawer
from flambeau.fx.passes.shape_prop import ShapeProp


class Dot:
    def __init__(self, name, rankdir):
        self.name, self.nodes, self.edges = name, {}, []

    def add_node(self, node):
        self.nodes[node[0]] = node[1]

    def add_edge(self, edge):
        self.edges.append(edge)


@pytest.fixture(autouse=True)
def pydot(monkeypatch):
    made = ModuleType("pydot")
    made.Dot, made.Edge = Dot, lambda source, user: (source, user)
    made.Node = lambda name, **facts: (name, facts)
    monkeypatch.setitem(sys.modules, "pydot", made)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = fx.symbolic_trace(nn.ReLU())
        self.linear = nn.Linear(2, 3, bias=False)

    def forward(self, x):
        return self.linear(self.inner(x)).sum(dim=1, keepdim=True) + x[:1]


@pytest.fixture
def graph():
    class Tracer(fx.Tracer):
        def is_leaf_module(self, module, name):
            return True
    model = Model()
    gm = fx.GraphModule(model, Tracer().trace(model))
    ShapeProp(gm).propagate(flambeau.ones(2, 2))
    return gm


def test_nodes_say_what_is_known_of_them(graph):
    drawn = FxGraphDrawer(graph, "g").get_dot_graph()
    assert drawn.nodes["sum_1"]["label"] == (
        r"{name=%sum_1|op_code=call_method\n|target=sum\n"
        r"|kwargs=\{\ldim: 1,\nkeepdim: True,\n\}\l|num_users=1\n|dtype=torch.float32\n"
        r"|shape=(2, 1)\n|requires_grad=True\n|stride=(1, 1)\n}")
    assert r"Linear\n|in_features: 2\nout_features: 3\n|" in drawn.nodes["linear"]["label"]
    assert drawn.nodes["linear.weight"]["label"] == (
        r"{linear.weight|op_code=get_parametertorch.float32[3, 2]\n}")
    assert {("linear.weight", "linear"), ("x", "inner"), ("add", "output")} <= set(drawn.edges)
    assert drawn.nodes["sum_1"]["fillcolor"] == "MistyRose2"        # of a hash of its name


def test_graphs_inside_have_pictures_of_their_own(graph):
    drawer = FxGraphDrawer(graph, "g")
    assert list(drawer.get_all_dot_graphs()) == ["g", "g_inner"]
    assert "relu" in drawer.get_dot_graph("inner").nodes


def test_what_can_be_left_out_and_shown(graph):
    next(iter(graph.graph.nodes)).meta["stack_trace"] = '  File "/a/b/c.py", line 7, in f\n    {x}'
    drawn = FxGraphDrawer(graph, "g", ignore_parameters_and_buffers=True, parse_stack_trace=True,
                          skip_node_names_in_args=False, dot_graph_shape="box").get_dot_graph()
    assert "linear.weight" not in drawn.nodes and drawn.nodes["x"]["shape"] == "box"
    assert "|args=(%linear,)" in drawn.nodes["sum_1"]["label"]
    assert drawn.nodes["x"]["label"].endswith(r"|file=b/c.py:7 \{x\}\n}")


def test_the_package_that_draws_is_named(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(RuntimeError, match="requires the pydot package"):
        FxGraphDrawer(graph, "g")
