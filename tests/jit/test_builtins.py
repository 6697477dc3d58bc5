"""Which op of TorchScript a function is."""
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.jit._builtins import _find_builtin


@pytest.mark.parametrize("function, name", [
    (torch.add, "aten::add"), (torch.linalg.svd, "aten::linalg_svd"),
    (torch.special.expit, "aten::special_expit"), (torch.fft.fft, "aten::fft_fft"),
    (F.avg_pool2d, "aten::avg_pool2d"), (F.logsigmoid, "aten::log_sigmoid"),
    (F.elu_, "aten::elu_"), (torch.is_grad_enabled, "aten::is_grad_enabled"),
    (torch.autograd.grad, "aten::grad"), (F.relu, None), (torch.unique_consecutive, None),
    (torch.nn.Linear, None)])
def test_ops_by_the_functions_that_they_are(function, name):
    assert _find_builtin(function) == name
