"""Channels that become pixels, and back."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("PixelShuffle", lambda t: t.nn.PixelShuffle(2), (2, 8, 3, 2))
cases("PixelUnshuffle", lambda t: t.nn.PixelUnshuffle(2), (2, 2, 4, 6))


class TestLayers(ModuleTests):
    cases = cases
