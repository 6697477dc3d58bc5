"""Softmax and its kin."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases.plain("Softmax", (3, 4), options="dim=1")
cases.plain("Softmin", (3, 4), options="dim=1")
cases.plain("LogSoftmax", (3, 4), options="dim=-1")
cases.plain("Softmax2d", (2, 3, 2, 2))


class TestLayers(ModuleTests):
    cases = cases
