"""Patches of images, and images of patches."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("Unfold", lambda t: t.nn.Unfold(2, padding=1, stride=2), (2, 3, 4, 5))
cases("Fold", lambda t: t.nn.Fold((4, 5), 2, stride=1), (2, 12, 12))


class TestLayers(ModuleTests):
    cases = cases
