"""Averages of models."""

import pytest

import flambeau as torch
from flambeau.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def averaged(values, **options):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    average = AveragedModel(model, **options)
    for value in values:
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(value)
        model[1].running_mean.fill_(value)
        model[1].num_batches_tracked.fill_(int(value))
        average.update_parameters(model)
    return average


@pytest.mark.parametrize("options, expected", [
    ({}, 7 / 3), ({"avg_fn": get_swa_avg_fn()}, 7 / 3),
    ({"multi_avg_fn": get_swa_multi_avg_fn()}, 7 / 3),
    ({"avg_fn": get_ema_avg_fn(0.5)}, 2.75), ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, 2.75),
])
def test_averages(options, expected):
    average = averaged([1.0, 2.0, 4.0], **options)
    assert average.n_averaged.item() == 3
    for p in average.module.parameters():
        assert torch.allclose(p, torch.full_like(p, expected))
    assert average.module[1].running_mean[0].item() == 4.0


def test_buffers_are_averaged_if_asked_for():
    average = averaged([1.0, 2.0, 4.0], use_buffers=True)
    assert average.module[1].running_mean[0].item() == pytest.approx(7 / 3)
    # an integer average is cut off at each step: 1, 1.5 -> 1, 1 + (4 - 1)/3
    assert average.module[1].num_batches_tracked.item() == 2


def test_state_dict_has_the_count():
    average = averaged([1.0])
    assert list(average.state_dict())[:2] == ["n_averaged", "module.0.weight"]


def test_bad_arguments():
    model = torch.nn.Linear(1, 1)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        AveragedModel(model, avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    with pytest.raises(ValueError, match=r"Invalid decay value 2\.0 provided"):
        get_ema_avg_fn(2.0)
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(ValueError, match="anneal_strategy must be one of"):
        SWALR(optimizer, 0.1, anneal_strategy="x")
    with pytest.raises(ValueError, match="swa_lr must have the same length"):
        SWALR(optimizer, [0.1, 0.2])


def test_update_bn():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=0.3))
    model.eval()
    batches = [torch.randn(3, 2), torch.randn(5, 2)]
    update_bn([[batch, 0] for batch in batches], model)
    mean = (batches[0].mean(0) + batches[1].mean(0)) / 2
    var = (batches[0].var(0) + batches[1].var(0)) / 2
    assert torch.allclose(model[0].running_mean, mean, atol=1e-6)
    assert torch.allclose(model[0].running_var, var, atol=1e-6)
    assert model[0].momentum == 0.3 and not model.training


def test_averages_of_lists_are_cited_by_the_function_that_made_them():
    from flambeau.optim import swa_utils
    for make, name in ((swa_utils.get_swa_multi_avg_fn, "swa_update"),
                       (swa_utils.get_ema_multi_avg_fn, "ema_update")):
        assert make().__qualname__ == f"{make.__name__}.<locals>.{name}"
