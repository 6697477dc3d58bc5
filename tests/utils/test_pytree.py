import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from flambeau.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, Point(3, 4))], "b": OrderedDict(c=5), "d": deque([6], 3),
        "e": defaultdict(list, f=7)}


def test_a_tree_comes_apart_and_together():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, 4, 5, 6, 7]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE and again["d"].maxlen == 3 and again["e"].default_factory is list


def test_paths_lead_to_the_leaves():
    found, spec = pytree.tree_flatten_with_path(TREE)
    assert spec == pytree.tree_structure(TREE)
    assert [pytree.keystr(path) for path, _ in found][:4] == [
        "['a'][0]", "['a'][1][0]", "['a'][1][1].x", "['a'][1][1].y"]
    assert all(pytree.key_get(TREE, path) == leaf for path, leaf in found)


def test_map_with_path():
    assert pytree.tree_map_with_path(lambda path, x, y: (pytree.keystr(path), x + y),
                                     [1, {"k": 2}], [10, {"k": 20}]) == [
        ("[0]", 11), {"k": ("[1]['k']", 22)}]


def test_shapes_as_text_are_pytorchs():
    spec = pytree.tree_structure({"a": [1, (2, 3)]})
    leaf = '{"type": null, "context": null, "children_spec": []}'
    assert pytree.treespec_dumps(spec) == (
        '[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": ['
        '{"type": "builtins.list", "context": "null", "children_spec": [' + leaf +
        ', {"type": "builtins.tuple", "context": "null", "children_spec": [' + leaf + ", " + leaf
        + "]}]}]}]")
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_a_type_without_keys_has_no_paths():
    class Box:
        def __init__(self, content):
            self.content = content

    pytree.register_pytree_node(Box, lambda b: ([b.content], None), lambda c, _: Box(c[0]))
    assert pytree.tree_leaves(Box(3)) == [3]
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Box(3))
    del pytree.SUPPORTED_NODES[Box]


def test_dataclasses_and_constants_as_containers():
    @dataclasses.dataclass
    class Place:
        x: object
        y: object = None

    @dataclasses.dataclass(frozen=True)
    class Unit:
        name: str

    pytree.register_dataclass(Place)
    pytree.register_constant(Unit)
    values, spec = pytree.tree_flatten({"p": Place(1, [2, 3]), "u": Unit("m")})
    assert values == [1, 2, 3]
    assert pytree.tree_unflatten([4, 5, 6], spec) == {"p": Place(4, [5, 6]), "u": Unit("m")}
    assert pytree.tree_map(lambda n: -n, Place(1)) == Place(-1)
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Place(1, 2))] \
        == [".x", ".y"]
    with pytest.raises(TypeError, match="can only be used with dataclasses"):
        pytree.register_dataclass(int)
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Plain", (), {}))
    with pytest.raises(ValueError, match="no field 'z'"):
        pytree.register_dataclass(Place, field_names=["z"])
