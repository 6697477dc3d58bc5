"""Types of the parts that nodes take out of containers."""
import operator
import typing

import pytest

from flambeau import fx
from flambeau.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes


class Pair(typing.NamedTuple):
    a: int
    b: str


@pytest.mark.parametrize(("whole", "index", "part"), [
    (tuple[int, str], 1, str), (tuple[int, ...], 5, int), (list[float], 3, float),
    (typing.Tuple[int, str], 0, int), (typing.List[float], 0, float),   # noqa: UP006
    (Pair, 1, str), (None, 0, None), (int, 0, None)])
def test_types(whole, index, part):
    graph = fx.Graph()
    x = graph.placeholder("x", whole)
    node = graph.call_function(operator.getitem, (x, index))
    graph.output(node)
    annotate_getitem_nodes(graph)
    assert node.type in (part, getattr(part, "__name__", part))
