"""Modules of modules."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn

cases = Cases()
cases("Sequential", lambda t: t.nn.Sequential(
    t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Sequential(t.nn.Linear(4, 2), t.nn.ReLU())), (5, 3))


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/container/modules",)


def test_a_dict_updates_from_its_own_kind_or_from_pairs():
    """A module of the other kind is what its iterator gives: keys, which are no pairs."""
    modules, parameters = nn.ModuleDict({"a": nn.ReLU()}), nn.ParameterDict({"a": torch.ones(1)})
    for one, other in ((modules, parameters), (parameters, modules)):
        with pytest.raises(ValueError, match="element #0 has length 1; 2 is required"):
            one.update(other)
        copied = type(one)()
        copied.update(one)
        assert list(copied.keys()) == ["a"] and copied["a"] is one["a"]
