"""The names that generated code uses."""
import flambeau
import flambeau as torch
from flambeau import fx


def test_nodes_named_like_builtins_do_not_hide_them():
    graph = fx.Graph()
    given = [graph.placeholder(name) for name in ("a", "b")]
    for node, name in zip(given, ("sum", "len")):
        node.name = node.target = name
    total = graph.call_function(flambeau.add, tuple(given))
    graph.output(total)
    code = fx.GraphModule({}, graph).code.split()
    assert "sum_1 = sum len_1 = len add = torch.add(sum_1, len_1);" in " ".join(code)
    assert repr(given[0]) == "sum"
    assert fx.GraphModule({}, graph)(torch.ones(1), torch.ones(1)) == 2
