"""Dropout: what is kept is scaled, moments stay, and gradients follow the mask."""
import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_what_is_kept_is_scaled(p):
    torch.manual_seed(0)
    x = torch.ones(5000, requires_grad=True)
    y = F.dropout(x, p)
    kept = y != 0
    assert torch.allclose(y[kept], torch.tensor(1 / (1 - p)))
    assert abs(kept.float().mean().item() - (1 - p)) < 0.03
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout", "dropout2d"])
def test_nothing_happens_in_evaluation(name):
    x = torch.rand(2, 3, 4, 4)
    assert torch.equal(getattr(F, name)(x, 0.5, training=False), x)
    with pytest.raises((ValueError, RuntimeError), match="probability"):
        getattr(F, name)(x, 1.5)


def test_whole_channels_are_dropped():
    torch.manual_seed(0)
    y = F.dropout2d(torch.ones(8, 16, 3, 3))
    whole = y.flatten(2)
    assert ((whole == 0).all(2) | (whole == 2).all(2)).all() and (whole == 0).any()


def test_alpha_dropout_keeps_mean_and_variance():
    torch.manual_seed(0)
    y = F.alpha_dropout(torch.randn(50_000), 0.3)
    assert abs(y.mean().item()) < 0.03 and abs(y.var().item() - 1) < 0.05


def test_all_or_nothing():
    x = torch.rand(4)
    assert torch.equal(F.dropout(x, 1.0), torch.zeros(4)) and torch.equal(F.dropout(x, 0.0), x)
    assert F.dropout(x, 0.5, inplace=True) is x


@pytest.mark.parametrize("name,rank", [("dropout1d", 2), ("dropout2d", 3), ("dropout3d", 4)])
def test_dropout_in_place_gives_the_tensor_of_one_example(name, rank):
    x = torch.ones((4,) + (2,) * (rank - 1))
    assert getattr(F, name)(x, 1.0, inplace=True) is x
    assert x.ndim == rank and not x.any()
