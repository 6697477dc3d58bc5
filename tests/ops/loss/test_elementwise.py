"""Layers that `flambeau/ops/loss/elementwise.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch
import flambeau.nn.functional as F

cases = Cases()
simple = cases.simple
cases.pair("mse_loss", lambda t, F, x, y, r: F.mse_loss(x, y, reduction=r))
cases.pair("mse_loss_weight", lambda t, F, x, y, r: F.mse_loss(x, y, reduction=r, weight=y.abs()))
cases.pair("l1_loss", lambda t, F, x, y, r: F.l1_loss(x, y, reduction=r))
cases.pair("smooth_l1_loss", lambda t, F, x, y, r: F.smooth_l1_loss(x, y, reduction=r, beta=0.7))
cases.pair("huber_loss", lambda t, F, x, y, r: F.huber_loss(x, y, reduction=r, delta=0.7))
cases.pair("bce", lambda t, F, x, y, r: F.binary_cross_entropy(x, y, reduction=r), "unit")
cases.pair("bce_logits", lambda t, F, x, y, r: F.binary_cross_entropy_with_logits(
    x, y, reduction=r), "positive")
cases.pair("kl_div", lambda t, F, x, y, r: F.kl_div(x, y, reduction=r), "positive")
cases.pair("kl_div_log", lambda t, F, x, y, r: F.kl_div(x, y, reduction=r, log_target=True))
cases.pair("poisson", lambda t, F, x, y, r: F.poisson_nll_loss(x, y, reduction=r), "positive")
cases.pair("poisson_full", lambda t, F, x, y, r: F.poisson_nll_loss(
    x.abs(), y, False, True, reduction=r), "positive")
cases.signed("soft_margin", lambda F, x, y, s, r: F.soft_margin_loss(
    x, s[:, None].expand(3, 4), reduction=r))


@cases("bce_logits_weights")
def _(torch, make):
    y = make(3, 4, low=0, high=1, grad=False)
    return torch.nn.functional.binary_cross_entropy_with_logits(
        make(3, 4), y, make(4, grad=False), pos_weight=make(4, low=0.5, high=2, grad=False))


@cases("bce_weight")
def _(torch, make):
    return torch.nn.functional.binary_cross_entropy(
        make(3, 4, low=0.05, high=0.95), make(3, 4, low=0, high=1, grad=False), make(4, grad=False))


simple("kl_div_batchmean", lambda t, F, x, y: F.kl_div(x, y.abs(), reduction="batchmean"), (3, 4),
       (3, 4))


class TestLayers(LayerTests):
    cases = cases


def test_weights_of_another_type_leave_the_type_of_the_loss():
    x, weight = torch.tensor([0.25, 0.5]), torch.tensor([2.0, 4.0], dtype=torch.float64)
    loss = F.binary_cross_entropy(x, torch.ones(2), weight, reduction="none")
    assert loss.dtype is torch.float32
    torch.testing.assert_close(loss, -x.log() * torch.tensor([2.0, 4.0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_weights_of_another_type_leave_the_type_of_a_loss_of_logits(dtype):
    x, ones = torch.tensor([0.25, 0.5], dtype=dtype), torch.ones(2, dtype=dtype)
    plain = F.binary_cross_entropy_with_logits(x, ones, reduction="none")
    for weight in (torch.tensor(2.0, dtype=torch.float64), torch.full((2,), 2.0).double()):
        for name in ("weight", "pos_weight"):
            loss = F.binary_cross_entropy_with_logits(x, ones, **{name: weight}, reduction="none")
            assert loss.dtype is dtype
            torch.testing.assert_close(loss, 2 * plain)


def test_which_shape_of_a_loss_of_logits_does_not_fit():
    x = torch.zeros(4, 5)
    for name, message in (("weight", r"tensor a \(5\) must match the size of tensor b \(6\)"),
                          ("pos_weight", r"tensor a \(6\) must match the size of tensor b \(5\)")):
        with pytest.raises(RuntimeError, match=message):
            F.binary_cross_entropy_with_logits(x, x, **{name: torch.ones(6)})
