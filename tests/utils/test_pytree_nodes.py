"""Which types are containers, and what they are made of."""
import dataclasses
from collections import OrderedDict, namedtuple

import pytest

import flambeau
from flambeau.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


class Box:
    def __init__(self, content):
        self.content = content


@pytest.fixture
def box():
    pytree.register_pytree_node(
        Box, lambda b: ([b.content], None), lambda children, _: Box(children[0]),
        flatten_with_keys_fn=lambda b: ([(pytree.GetAttrKey("content"), b.content)], None))
    yield
    pytree._deregister_pytree_node(Box)


def test_own_containers(box):
    assert pytree.tree_map(lambda x: x + 1, Box([1, 2])).content == [2, 3]
    (path, leaf), = pytree.tree_flatten_with_path(Box(5))[0]
    assert pytree.keystr(path) == ".content" and leaf == 5
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Box, lambda b: ([], None), lambda c, _: Box(None))




def test_text_needs_both_directions():
    with pytest.raises(ValueError, match="Both to_dumpable_context and from_dumpable_context"):
        pytree.register_pytree_node(Box, lambda b: ([], None), lambda c, _: Box(None),
                                    to_dumpable_context=str)
    pytree.SUPPORTED_NODES.pop(Box, None)


@pytest.mark.parametrize("obj, named, sequence", [
    (Point(1, 2), True, False), ((1, 2), False, False),
    (flambeau.ones(1, 1).max(1), False, True), ([1], False, False)])
def test_kinds_of_tuples(obj, named, sequence):
    assert pytree.is_namedtuple(obj) is pytree.is_namedtuple_instance(obj) is named
    assert pytree.is_namedtuple_class(type(obj)) is named
    assert pytree.is_structseq(obj) is sequence and pytree.is_structseq_class(type(obj)) is sequence


def test_classes_are_no_instances():
    assert not pytree.is_namedtuple_instance(Point) and pytree.is_namedtuple(Point)


def test_keys_read_what_they_name():
    assert pytree.SequenceKey(1).get([5, 6]) == 6
    assert pytree.MappingKey("a").get({"a": 7}) == 7
    assert pytree.GetAttrKey("x").get(Point(8, 9)) == 8


def test_fields_that_are_left_out():
    @dataclasses.dataclass
    class Place:
        x: object
        name: str = "here"

    pytree.register_dataclass(Place, field_names=["x"], drop_field_names=["name"])
    assert pytree.tree_leaves(Place(1, "there")) == [1]
    assert pytree.tree_map(lambda n: -n, Place(1, "there")) == Place(-1, "here")


def test_the_order_of_dictionaries_is_kept():
    leaves, spec = pytree.tree_flatten({"b": 1, "a": 2})
    assert leaves == [1, 2] and list(pytree.tree_unflatten(leaves, spec)) == ["b", "a"]
    ordered = pytree.tree_unflatten(*pytree.tree_flatten(OrderedDict(b=1, a=2)))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]
