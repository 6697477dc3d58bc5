"""Lists and dicts that do not change."""
import copy
import pickle

import pytest

from flambeau.fx.immutable_collections import immutable_dict, immutable_list
from flambeau.utils import _pytree

CHANGES = [
    *[(immutable_list([2, 1]), change) for change in (
        lambda v: v.append(1), lambda v: v.extend([1]), lambda v: v.insert(0, 1), lambda v: v.pop(),
        lambda v: v.remove(1), lambda v: v.reverse(), lambda v: v.sort(), lambda v: v.clear(),
        lambda v: v.__setitem__(0, 1), lambda v: v.__delitem__(0), lambda v: v.__iadd__([1]),
        lambda v: v.__imul__(2))],
    *[(immutable_dict(a=1), change) for change in (
        lambda v: v.update(b=1), lambda v: v.setdefault("b"), lambda v: v.pop("a"),
        lambda v: v.popitem(), lambda v: v.clear(), lambda v: v.__setitem__("a", 2),
        lambda v: v.__delitem__("a"), lambda v: v.__ior__({}))],
]


@pytest.mark.parametrize(("value", "change"), CHANGES)
def test_changes_are_refused(value, change):
    before = copy.copy(value)
    with pytest.raises(TypeError, match=f"'{type(value).__name__}' object does not support "
                                        "mutation. If you are attempting to modify"):
        change(value)
    assert value == before


def test_they_are_values():
    a, b = immutable_list([1, (2,)]), immutable_dict(x=1)
    assert hash(a) == hash(immutable_list([1, (2,)])) and hash(b) == hash(immutable_dict(x=1))
    for value in (a, b):
        for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
            assert other == value and type(other) is type(value)
    assert repr(a) == "[1, (2,)]" and repr(b) == "{'x': 1}"
    assert a + [3] == [1, (2,), 3] and [*a] == [1, (2,)]


def test_trees_of_them():
    leaves, spec = _pytree.tree_flatten(immutable_dict(a=immutable_list([1, 2])))
    assert leaves == [1, 2]
    made = _pytree.tree_unflatten([3, 4], spec)
    assert made == {"a": [3, 4]}
    assert type(made) is immutable_dict and type(made["a"]) is immutable_list
