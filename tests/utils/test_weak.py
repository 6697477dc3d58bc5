"""Weak references that are keys."""
import gc

import pytest

import flambeau as torch
from flambeau.utils.weak import (
    TensorWeakRef,
    WeakIdKeyDictionary,
    WeakIdRef,
    _WeakHashRef,
)


class Key:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)


def test_by_identity_or_by_equality():
    a, b = Key(1), Key(1)
    assert WeakIdRef(a) == WeakIdRef(a) and len({WeakIdRef(a), WeakIdRef(b)}) == 2
    assert len({_WeakHashRef(a), _WeakHashRef(b), _WeakHashRef(Key(2))}) == 2
    assert hash(WeakIdRef(a)) == id(a) and hash(_WeakHashRef(a)) == hash(1)


def test_a_dead_reference_equals_itself_alone():
    for kind in (WeakIdRef, _WeakHashRef):
        a = Key(1)
        one, other, number = kind(a), kind(a), hash(kind(a))
        del a
        gc.collect()
        assert one() is None and one == one and len({one, other}) == 2 and hash(one) == number


def test_entries_go_with_their_keys():
    x, y = torch.ones(2), torch.ones(2)
    found = WeakIdKeyDictionary({x: 1, y: 2})
    assert found[x] == 1 and len(found) == 2
    del x
    gc.collect()
    assert len(found) == 1 and list(found.values()) == [2]


def test_keys_are_compared_by_identity():
    a, b = torch.ones(2), torch.ones(2)
    found = WeakIdKeyDictionary({a: 1})
    found[b] = 2
    assert (len(found), found[a], b in found, torch.ones(2) in found, 3 in found) == (
        2, 1, True, False, False)
    assert list(found.values()) == [1, 2] and found.get(torch.ones(1), 7) == 7
    assert [key is a or key is b for key in found] == [True, True]
    del b
    assert len(found) == 1
    with pytest.raises(KeyError):
        found[torch.ones(1)]
    with pytest.raises(TypeError, match="cannot create weak reference to 'int' object"):
        found[3] = 4


def test_dictionaries_can_be_copied_joined_and_emptied():
    a, b = torch.ones(2), torch.ones(2)
    found = WeakIdKeyDictionary({a: 1})
    assert found.copy() == found and found | {b: 2} == {a: 1, b: 2}
    assert found.setdefault(a, 9) == 1 and found.setdefault(b, 9) == 9
    assert found.pop(b) == 9 and found.pop(b, 5) == 5
    key, value = found.popitem()
    assert key is a and value == 1
    with pytest.raises(KeyError, match="dictionary is empty"):
        found.popitem()


def test_references():
    a = torch.ones(2)
    one, two, tensor = WeakIdRef(a), WeakIdRef(a), TensorWeakRef(a)
    assert one == two and hash(one) == id(a) and tensor() is a
    del a
    assert one != two and one() is tensor() is None
    with pytest.raises(AssertionError, match="expected"):
        TensorWeakRef(3)
