"""Reductions of losses: their names, their numbers, and what the old switches meant."""
import pytest

import flambeau as torch
from flambeau.ops.loss.reduction import number_of

F = torch.nn.functional


def test_names_and_numbers():
    assert [number_of(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        number_of("median")


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_means_and_sums_are_of_the_elements(loss):
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    each = loss(x, y, reduction="none")
    assert torch.allclose(loss(x, y), each.mean())
    assert torch.allclose(loss(x, y, reduction="sum"), each.sum())


@pytest.mark.parametrize("switches,name", [
    ({"size_average": False}, "sum"), ({"reduce": False}, "none"),
    ({"size_average": True}, "mean")])
def test_the_old_switches(switches, name):
    x, y = torch.rand(3), torch.rand(3)
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        found = F.mse_loss(x, y, **switches)
    assert torch.equal(found, F.mse_loss(x, y, reduction=name))
