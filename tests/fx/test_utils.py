"""Text about graphs."""
import flambeau as torch
from flambeau import fx
from flambeau.fx import _utils
from flambeau.fx.experimental.proxy_tensor import make_fx


def test_code_for_logs():
    traced = fx.symbolic_trace(lambda x: x.sin())
    text = str(_utils.lazy_format_graph_code("forward", traced, 3))
    assert text.startswith("TRACED GRAPH\n ===== forward 3 =====\n")
    assert "def forward(self, x):" in text
    assert "===== forward =====" in str(_utils.lazy_format_graph_code("forward", traced))


def test_nodes_in_their_surroundings():
    graph = fx.symbolic_trace(lambda x: x.sin().cos().tan()).graph
    *_, tan, _ = graph.nodes
    assert _utils.get_node_context(tan).splitlines() == [n.format_node() for n in graph.nodes][2:4]
    assert _utils.get_node_context(tan, 1) == tan.format_node()


def test_the_modules_of_the_first_call():
    assert _utils.first_call_function_nn_module_stack(fx.symbolic_trace(lambda x: x).graph) is None
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act, self.end = torch.nn.ReLU(), torch.nn.Sigmoid()

        def forward(self, x):
            return self.end(self.act(x))
    def graph_of(model):
        return make_fx(model, record_module_stack=True)(torch.ones(2)).graph
    assert _utils.first_call_function_nn_module_stack(graph_of(Model())) is None

    class Compiled(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self._orig_mod = model

        def forward(self, x):
            return self._orig_mod(x)
    graph = graph_of(Compiled(Model()))
    found = _utils.first_call_function_nn_module_stack(graph)
    assert list(found) == ["", "act"]
    assert found["act"] == ("act", f"{torch.nn.ReLU.__module__}.ReLU")
