"""Graph modules whose code may wait."""
import copy
import pickle

import flambeau as torch
from flambeau import fx
from flambeau.fx import _lazy_graph_module as lazy


def program(x):
    return x.sin() + 1


def test_which_class_is_made():
    traced = fx.symbolic_trace(program)
    assert lazy._get_graph_module_cls() is fx.GraphModule
    with lazy._use_lazy_graph_module(True):
        assert isinstance(lazy._make_graph_module(traced, traced.graph), lazy._LazyGraphModule)
        with lazy._force_skip_lazy_graph_module(), lazy._use_lazy_graph_module(True):
            assert lazy._get_graph_module_cls() is fx.GraphModule
        assert lazy._get_graph_module_cls() is lazy._LazyGraphModule
    made = lazy._make_graph_module(traced, traced.graph)
    assert not isinstance(made, lazy._LazyGraphModule)


def test_it_is_the_program():
    made = lazy._LazyGraphModule.from_graphmodule(fx.symbolic_trace(program))
    assert lazy._LazyGraphModule.from_graphmodule(made) is made
    x = torch.tensor([0.0, 1.0])
    lazy._LazyGraphModule.force_recompile(made)
    for other in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert isinstance(other, fx.GraphModule)
        torch.testing.assert_close(other(x), program(x))
    made.graph.find_nodes(op="call_method", target="sin")[0].target = "cos"
    made.recompile()
    made.real_recompile()
    assert not made._needs_recompile() and "x.cos()" in made.code
    torch.testing.assert_close(made(x), x.cos() + 1)
