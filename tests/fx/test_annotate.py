"""Types of values, for the graph."""
import pytest

from flambeau import fx
from flambeau.fx.annotate import annotate


def test_nodes_keep_the_type():
    def program(x: int):
        return annotate(x + 1, float)
    traced = fx.symbolic_trace(program)
    assert next(n.type for n in traced.graph.nodes if n.name == "add") is float
    assert "add : float = x + 1" in traced.code
    assert annotate("text", int) == "text"


def test_one_type_a_value():
    with pytest.raises(RuntimeError, match=r"already had a type on it! Existing type is .*int.* "
                                           r"and new type is .*float"):
        fx.symbolic_trace(lambda x: annotate(annotate(x.sin(), int), float))
