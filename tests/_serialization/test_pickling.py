"""Pickles of tensors and storages outside of files."""

import pickle
from collections import OrderedDict

import pytest
from serialization_cases import OWN, entries, geometry, shared_entries

import flambeau


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickled_tensors_have_all_of_their_storage_each_a_copy(protocol):
    state = pickle.loads(pickle.dumps(shared_entries(), protocol))
    assert geometry(entries(state)) == [(i, *own) for i, own in enumerate(OWN)]
    for ours, given in zip(entries(state), entries(shared_entries())):
        assert ours.shape == given.shape and ours.requires_grad == given.requires_grad
    assert flambeau.equal(state["columns"], flambeau.arange(6.0).view(2, 3).t())


def test_pickled_tensors_are_calls_of_pytorchs_functions():
    function, args = flambeau.arange(6.0)[1:3].__reduce_ex__(2)
    assert function is flambeau._utils._rebuild_tensor_v2
    assert type(args[0]) is flambeau.TypedStorage
    assert args[1:] == (1, (2,), (1,), False, OrderedDict())


def test_pickled_storages():
    typed = flambeau.arange(3, dtype=flambeau.int16).storage()
    again = pickle.loads(pickle.dumps(typed))
    assert type(again) is flambeau.TypedStorage and again.dtype is flambeau.int16
    assert again.tolist() == [0, 1, 2]
    bare = pickle.loads(pickle.dumps(typed.untyped()))
    assert type(bare) is flambeau.UntypedStorage and bare.tolist() == [0, 0, 1, 0, 2, 0]
