"""Containers of a known shape are taken apart."""
import collections

import pytest

from flambeau.fx import _pytree as fx_pytree
from flambeau.utils import _pytree

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(("example", "other", "leaves"), [
    ([1, {"a": 2}], [5, {"a": 6}], [5, 6]),
    ((1, [2, 3]), (4, [5, 6]), [4, 5, 6]),
    (Point(1, [2]), Point(3, [4]), [3, 4]),
    ({"b": 1, "a": 2}, {"a": 3, "b": 4}, [4, 3]),
    ([1, 2], [3, 4, 5], [3, 4]),                        # as far as the shape goes
    ({"a": 1}, {"a": 2, "b": 3}, [2]),
    (1, [2, 3], [[2, 3]]), ([], [], []),
])
def test_leaves(example, other, leaves):
    assert fx_pytree.tree_flatten_spec(other, _pytree.tree_structure(example)) == leaves


def test_containers_of_the_program():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b
    _pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda v, c: Pair(*v),
                                 serialized_type_name=f"{__name__}.Pair")
    spec = _pytree.tree_structure(Pair(1, 2))
    fx_pytree.register_pytree_flatten_spec(Pair, lambda p, spec: [p.a, p.b])
    assert fx_pytree.tree_flatten_spec(Pair(3, 4), spec) == [3, 4]
    fx_pytree._deregister_pytree_flatten_spec(Pair)
    assert Pair not in fx_pytree.SUPPORTED_NODES
