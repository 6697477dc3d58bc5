"""Modules of modules."""
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

cases = Cases()
cases("Sequential", lambda t: t.nn.Sequential(
    t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Sequential(t.nn.Linear(4, 2), t.nn.ReLU())), (5, 3))


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/container/modules",)
