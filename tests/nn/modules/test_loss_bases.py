"""What losses share: reductions, by name or by the old flags, and weights of classes."""
import warnings

import pytest

import flambeau as torch
from flambeau import nn


@pytest.mark.parametrize("flags, name", [
    ((None, False), "none"), ((False, None), "sum"), ((True, True), "mean"), ((None, True), "mean"),
    ((False, False), "none")])
def test_old_flags_say_the_reduction(flags, name):
    with pytest.warns(UserWarning, match=f"please use reduction='{name}' instead"):
        loss = nn.MSELoss(*flags)
    assert loss.reduction == name


def test_the_warning_names_the_line_of_the_program():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        nn.L1Loss(reduce=False)
    assert [w.filename for w in seen] == [__file__]


def test_weights_are_buffers():
    weight = torch.tensor([1.0, 2.0])
    assert dict(nn.NLLLoss(weight).named_buffers())["weight"] is weight
    assert nn.NLLLoss().weight is None and not nn.NLLLoss().state_dict()
