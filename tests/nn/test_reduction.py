"""How a loss sums up its elements, and the two old flags that said so."""
import pytest

import flambeau as torch
from flambeau.nn import _reduction
from flambeau.nn import functional as F


@pytest.mark.parametrize("name, number", [("none", 0), ("mean", 1), ("sum", 2)])
def test_numbers(name, number):
    assert _reduction.get_enum(name) == number


@pytest.mark.parametrize("name", ["x", "", "Mean"])
def test_other_names(name):
    with pytest.raises(ValueError, match=f"^{name} is not a valid value for reduction"):
        _reduction.get_enum(name)
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(torch.ones(1), torch.ones(1), reduction=name)


def test_an_old_name_of_the_mean():
    with pytest.warns(UserWarning, match="reduction='elementwise_mean' is deprecated"):
        assert _reduction.get_enum("elementwise_mean") == 1


@pytest.mark.parametrize("average, reduce, wanted", [
    (None, None, "mean"), (True, None, "mean"), (False, None, "sum"), (None, False, "none"),
    (True, False, "none"), (False, True, "sum")])
def test_old_flags(average, reduce, wanted):
    with pytest.warns(UserWarning, match=f"please use reduction='{wanted}' instead"):
        assert _reduction.legacy_get_string(average, reduce) == wanted
    assert _reduction.legacy_get_string(average, reduce, emit_warning=False) == wanted
    assert _reduction.legacy_get_enum(average, reduce, False) == _reduction.get_enum(wanted)


def test_flags_of_a_loss():
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        loss = torch.nn.MSELoss(size_average=False)
    assert loss.reduction == "sum" and loss(torch.ones(3), torch.zeros(3)).item() == 3
