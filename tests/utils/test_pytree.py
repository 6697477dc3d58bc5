import dataclasses
import re
import time
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import flambeau
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


def test_a_shape_counts_its_nodes_and_makes_containers():
    spec = pytree.tree_structure([1, {"a": 2, "b": (3, None)}])
    assert (spec.num_nodes, spec.num_leaves, spec.num_children) == (7, 4, 2)
    assert spec.child(1).context == ["a", "b"] and spec.children()[0].is_leaf()
    assert spec.unflatten("wxyz") == ["w", {"a": "x", "b": ("y", "z")}]
    with pytest.raises(ValueError, match="`leaves` has length 2 but the spec refers to a pytree "
                                         "that holds 4 items"):
        spec.unflatten([1, 2])
    assert pytree.treespec_pprint(spec) == "[*, {'a': *, 'b': (*, *)}]"
    made = pytree.treespec_tuple([pytree.treespec_leaf(), pytree.treespec_dict(a=spec)])
    assert made == pytree.tree_structure((0, {"a": [1, {"a": 2, "b": (3, None)}]}))


def test_other_trees_are_read_up_to_a_shape():
    spec = pytree.tree_structure({"a": 1, "b": (2, 3)})
    assert spec.flatten_up_to({"b": ([4], 5), "a": {"x": 6}}) == [{"x": 6}, [4], 5]
    assert spec.flatten_up_to(defaultdict(list, a=1, b=(2, 3))) == [1, 2, 3]
    for other, message in [
            ([1, 2], "Node type mismatch; expected <class 'dict'>, but got <class 'list'>."),
            ({"a": 1, "b": (2,)}, "Node arity mismatch; expected 2, but got 1."),
            ({"a": 1, "c": 2}, "Node keys mismatch; missing key"),
            ({"a": 1, "b": [2, 3]}, "expected <class 'tuple'>, but got <class 'list'>.")]:
        with pytest.raises(ValueError, match=re.escape(message)):
            pytree.tree_map(lambda x, y: x, {"a": 1, "b": (2, 3)}, other)


def test_sizes_and_return_types_are_containers_and_times_are_not():
    values = flambeau.tensor([[1.0, 2.0]]).max(1)
    leaves, spec = pytree.tree_flatten((values, flambeau.Size([3, 4]), time.localtime(0)))
    assert leaves[2:4] == [3, 4] and len(leaves) == 5
    again = pytree.tree_unflatten(leaves, spec)
    assert type(again[0]) is type(values) and type(again[1]) is flambeau.Size
    assert pytree.is_structseq(values) and not pytree.is_namedtuple(values)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec.child(1))) == spec.child(1)


def test_functions_of_some_leaves():
    assert pytree.tree_map_only((int, str), lambda x: x * 2, [1, "a", None]) == [2, "aa", None]
    assert pytree.tree_map_only(lambda x: x == 1, lambda x: x * 2, [1, "a"]) == [2, "a"]
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
    assert pytree.arg_tree_leaves(1, [2], x=3) == [1, 2, 3]
    with pytest.raises(TypeError, match=r"Argument must be a type, a tuple of types, or a call"):
        pytree.map_only(3)


def test_contexts_have_their_text():
    spec = pytree.tree_structure([defaultdict(list, a=1), deque([1], 4)])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(NotImplementedError, match="namedtuple class"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    spec = pytree.tree_structure(Point(1, 2))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="already registered as pytree node"):
        pytree.register_pytree_node(list, list, list)


def test_keys_of_paths_are_leaves():
    from flambeau.utils import _pytree
    keys = [_pytree.SequenceKey(1), _pytree.MappingKey("a"), _pytree.GetAttrKey("b")]
    assert list(map(repr, keys)) == ["SequenceKey(idx=1)", "MappingKey(key='a')",
                                     "GetAttrKey(name='b')"]
    assert _pytree.tree_leaves(keys) == keys and len(set(keys + keys)) == 3
    assert _pytree.keystr(tuple(keys)) == "[1]['a'].b"
