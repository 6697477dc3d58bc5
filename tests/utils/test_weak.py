"""Weak references that are keys."""
import gc

import flambeau as torch
from flambeau.utils.weak import WeakIdKeyDictionary, WeakIdRef, _WeakHashRef


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
