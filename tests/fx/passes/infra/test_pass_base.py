"""A pass with checks before and after."""
import pytest

from flambeau import fx
from flambeau.fx.passes.infra.pass_base import PassBase, PassResult


class Rename(PassBase):
    """Renames sin to cos; keeps the order of what is called."""
    def __init__(self):
        self.calls = []

    def call(self, graph_module):
        self.calls.append("call")
        found = graph_module.graph.find_nodes(op="call_method", target="sin")
        for node in found:
            node.target = "cos"
        graph_module.recompile()
        return PassResult(graph_module, bool(found))

    def requires(self, graph_module):
        self.calls.append("requires")
        if not graph_module.graph.find_nodes(op="placeholder"):
            raise ValueError("no inputs")

    def ensures(self, graph_module):
        self.calls.append("ensures")


def test_checks_surround_the_pass():
    run, module = Rename(), fx.symbolic_trace(lambda x: x.sin())
    found = run(module)
    assert run.calls == ["requires", "call", "ensures"]
    assert found.graph_module is module and found.modified and "x.cos()" in module.code
    assert run(module) == (module, False)
    with pytest.raises(ValueError, match="no inputs"):
        run(fx.symbolic_trace(lambda: 3))
    assert run.calls[-1] == "requires"


def test_a_pass_has_to_do_something():
    with pytest.raises(TypeError, match="abstract"):
        PassBase()
