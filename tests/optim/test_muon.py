"""Muon."""
import pytest
from optimizer_tests import OptimizerTests

import flambeau as torch
from flambeau.optim import _muon


class TestMuon(OptimizerTests):
    name = "Muon"
    state = "momentum_buffer"
    options = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
    refused = [
        ({"lr": -1.0}, ValueError, "Learning rate should be >= 0 but is: -1.0"),
        ({"momentum": -1.0}, ValueError, "momentum should be >= 0 but is: -1.0"),
        ({"adjust_lr_fn": "x"}, ValueError, "Adjust learning rate function x is not supported"),
    ]


def test_it_takes_matrices_only():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        torch.optim.Muon([torch.ones(3, requires_grad=True)])


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (6, 3)])
def test_a_step_is_nearly_orthogonal(shape):
    torch.manual_seed(0)
    p = torch.zeros(shape, requires_grad=True)
    p.grad = torch.randn(shape)
    torch.optim.Muon([p], lr=1.0, weight_decay=0.0, momentum=0.0).step()
    rate = max(1, shape[0] / shape[1]) ** 0.5
    sizes = torch.linalg.svdvals(p.detach()) / rate
    assert sizes.min() > 0.6 and sizes.max() < 1.3
    left, _, right = torch.linalg.svd(p.grad, full_matrices=False)
    assert (-p.detach() * (left @ right)).sum() > 0.8 * min(shape) * rate


def test_parts():
    assert _muon._adjust_lr(0.5, None, (8, 2)) == 1.0
    assert _muon._adjust_lr(0.5, "original", (2, 8)) == 0.5
    assert _muon._adjust_lr(0.5, "match_rms_adamw", (4, 9)) == pytest.approx(0.3)
    direction = _muon._zeropower_via_newtonschulz(torch.eye(3), (3.4445, -4.775, 2.0315), 5, 1e-7)
    assert direction.dtype is torch.bfloat16
    torch.testing.assert_close(direction.float(), direction[0, 0].float() * torch.eye(3))
    with pytest.raises(ValueError, match="must be less than 100"):
        _muon._zeropower_via_newtonschulz(torch.eye(3), (1, 1, 1), 100, 1e-7)
