"""Pickles of checkpoints as objects, built from data alone or in trust."""
import collections
import pickle

import pytest
from serialization_cases import saved

import flambeau as torch


class Other(pickle.Unpickler):
    def find_class(self, module, name):
        if name == "OrderedDict":
            return dict
        return super().find_class(module, name)


class OtherModule:
    Unpickler, load, loads = Other, pickle.load, pickle.loads


def test_another_pickle_module():
    file = saved(collections.OrderedDict(a=torch.ones(2)))
    found = torch.load(file, weights_only=False, pickle_module=OtherModule)
    assert type(found) is dict and found["a"].tolist() == [1.0, 1.0]
    file.seek(0)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_mod"):
        torch.load(file, weights_only=True, pickle_module=OtherModule)


def test_advice_on_names():
    file = saved(pytest.Class)
    with pytest.raises(pickle.UnpicklingError, match=r"(?s)Weights only load failed.*pytest"):
        torch.load(file)
