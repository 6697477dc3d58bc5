"""Log-softmax in clusters of classes."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("AdaptiveLogSoftmaxWithLoss", lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(
    8, 12, [3, 7], div_value=2.0, head_bias=True), (4, 8), lambda t: t.tensor([0, 5, 11, 2]))


class TestLayers(ModuleTests):
    cases = cases
