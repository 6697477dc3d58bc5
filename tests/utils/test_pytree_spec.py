"""The shape of a tree: its text, equality, and what it makes of leaves."""
import json

import pytest

from flambeau.utils import _pytree as pytree

TREE = {"a": [1, (2, None)], "b": ()}


def test_equality_and_hash():
    first, second = pytree.tree_structure(TREE), pytree.tree_structure(
        {"a": ["x", ("y", "z")], "b": ()})
    assert first == second and hash(first) == hash(second)
    assert first != pytree.tree_structure({"a": [1, [2, None]], "b": ()})
    assert first != pytree.tree_structure({"a": [1, (2, None)]}) and first != 3


def test_leaves():
    leaf = pytree.treespec_leaf()
    assert leaf.is_leaf() and leaf == pytree.tree_structure(5) == pytree.LeafSpec()
    assert leaf.unflatten([7]) == 7 and (leaf.num_leaves, leaf.num_nodes) == (1, 1)
    assert repr(leaf) == "*"


def test_empty_containers_have_no_leaves():
    spec = pytree.tree_structure([{}, ()])
    assert spec.num_leaves == 0 and spec.unflatten([]) == [{}, ()]


def test_repr():
    assert repr(pytree.tree_structure([1, 2])) == (
        "TreeSpec(list, None, [*,\\n  *])".replace("\\n", "\n"))


def test_text_is_json():
    protocol, plain = json.loads(pytree.treespec_dumps(pytree.tree_structure([1])))
    assert protocol == 1 and plain["type"] == "builtins.list"
    with pytest.raises(ValueError, match="Unknown protocol 9"):
        pytree.treespec_dumps(pytree.tree_structure([1]), protocol=9)
    with pytest.raises(ValueError, match="Unknown protocol"):
        pytree.treespec_loads("[9, {}]")


@pytest.mark.parametrize("call, error, message", [
    (lambda: pytree.tree_unflatten([1], 3), TypeError, "instance of PyTreeSpec|instance of TreeSp"),
    (lambda: pytree.treespec_tuple([3]), ValueError, "Expected a tuple of TreeSpec values"),
    (lambda: pytree.treespec_dict(a=3), ValueError, "Expected a dictionary of TreeSpec values"),
    (lambda: pytree.tree_structure([1, 2]).unflatten([1, 2, 3]), ValueError,
     "`leaves` has length 3 but the spec refers to a pytree that holds 2 items"),
])
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()
