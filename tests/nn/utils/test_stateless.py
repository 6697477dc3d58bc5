"""Modules called with other tensors, by their old name."""
import pytest
from script_tests import ScriptTests

import flambeau


class TestScripts(ScriptTests):
    topics = ("utils/stateless",)


def test_names_that_lead_nowhere():
    layer, x = flambeau.nn.Linear(2, 3), flambeau.ones(2)
    with pytest.raises(TypeError, match="submodule `weight`: Parameter containing"):
        flambeau.func.functional_call(layer, {"weight.a": x}, x)
    with pytest.raises(KeyError, match="tensor name can"):
        flambeau.func.functional_call(layer, {"": x}, x)
    with pytest.raises(AttributeError, match="Sequential has no attribute `1`"):
        flambeau.func.functional_call(flambeau.nn.Sequential(layer), {"1.weight": x}, x)
