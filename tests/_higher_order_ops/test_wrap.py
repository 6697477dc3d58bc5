"""Ops around the call of a function."""
import pytest

import flambeau as torch
from flambeau._higher_order_ops import wrap as wraps

X = torch.tensor([1.0, 2.0], requires_grad=True)


def double(x):
    return 2 * x


def test_plain():
    assert wraps.wrap(double, X).tolist() == [2, 4]
    assert wraps.wrap(double, X).requires_grad


@pytest.mark.parametrize("enabled", [True, False])
def test_grad_mode(enabled):
    seen = []

    def f(x):
        seen.append(torch.is_grad_enabled())
        return double(x)
    found = wraps.wrap_with_set_grad_enabled(enabled, f, X)
    assert seen == [enabled] and found.tolist() == [2, 4] and torch.is_grad_enabled()


def test_autocast():
    found = wraps.wrap_with_autocast("cpu", torch.bfloat16, True, None,
                                     lambda x: x.reshape(1, 2) @ x.reshape(2, 1), X.detach())
    assert found.dtype is torch.bfloat16 and found.item() == 5
    assert not torch.is_autocast_enabled("cpu")


def test_recomputed():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin()
    x = X.detach().clone().requires_grad_()
    wraps.wrap_activation_checkpoint(f, x).sum().backward()
    assert len(calls) == 2
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_keywords_of_checkpoints_are_told_apart():
    ours, theirs = wraps.TagActivationCheckpoint.divide_kwargs(
        {"use_reentrant": False, "preserve_rng_state": True, "scale": 3})
    assert ours == {"use_reentrant": False, "preserve_rng_state": True} and theirs == {"scale": 3}
