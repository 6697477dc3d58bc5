"""Channels of groups, interleaved."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("ChannelShuffle", lambda t: t.nn.ChannelShuffle(2), (2, 6, 3))


class TestLayers(ModuleTests):
    cases = cases
