"""Dimensions joined and split."""
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

cases = Cases()
cases("Flatten", lambda t: t.nn.Flatten(), (2, 3, 4))
cases("Unflatten", lambda t: t.nn.Unflatten(1, (2, 3)), (2, 6))


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/flatten",)
