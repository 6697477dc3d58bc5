"""Every scheduler sets the rates that PyTorch's sets, warns where it warns, saves and loads."""

import json
import warnings
from pathlib import Path

import pytest
from optim_cases import SCHEDULERS, _Both, schedule, scheduler_cases

import flambeau as torch
from flambeau.optim import lr_scheduler as schedulers

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "optim_schedules.json").read_text())


def sgd(lr=0.1, **options):
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=lr, **options)


@pytest.mark.parametrize("key, name, way", list(scheduler_cases()))
def test_schedule(key, name, way):
    for mine, theirs in zip(schedule(torch, name, way), RECORDED[key], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_state_dict_resumes(name):
    def made():
        groups = [{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.02)]
        optimizer = torch.optim.SGD(groups, momentum=0.9)
        return optimizer, SCHEDULERS[name](_Both(torch), optimizer)

    def advance(optimizer, scheduler):
        optimizer.step()
        scheduler.step(*([0.5] if name.startswith("plateau") else []))
        return scheduler.get_last_lr()

    first, second = made(), made()
    for _ in range(5):
        advance(*first)
    second[1].load_state_dict(first[1].state_dict())
    second[0].load_state_dict(first[0].state_dict())
    for _ in range(5):
        assert advance(*second) == pytest.approx(advance(*first), rel=1e-12)


def test_learning_rates_in_tensors_are_filled():
    optimizer = sgd(lr=torch.tensor(0.5))
    rate = optimizer.param_groups[0]["lr"]
    scheduler = schedulers.StepLR(optimizer, 1, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25


def test_order_of_steps():
    scheduler = schedulers.StepLR(sgd(), 1)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before"):
        scheduler.step()
    optimizer = sgd()
    scheduler = schedulers.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler"):
        scheduler.step()
    optimizer = sgd()
    scheduler = schedulers.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()


def test_other_warnings():
    scheduler = schedulers.StepLR(sgd(), 1)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        scheduler.get_lr()
    scheduler.optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        scheduler.step(3)


@pytest.mark.parametrize("make, error, message", [
    (lambda: schedulers.StepLR(3, 1), TypeError, "int is not an Optimizer"),
    (lambda: schedulers.StepLR(sgd(), 1, last_epoch=3), KeyError, "'initial_lr' is not specified"),
    (lambda: schedulers.LambdaLR(sgd(), [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got"),
    (lambda: schedulers.ConstantLR(sgd(), 2.0), ValueError, "Constant multiplicative factor"),
    (lambda: schedulers.LinearLR(sgd(), 0.0), ValueError, "Starting multiplicative factor"),
    (lambda: schedulers.LinearLR(sgd(), 0.5, 2.0), ValueError, "Ending multiplicative factor"),
    (lambda: schedulers.SequentialLR(sgd(), [], []), ValueError, "expects at least one scheduler"),
    (lambda: schedulers.ChainedScheduler([]), ValueError, "expects at least one scheduler to be"),
    (lambda: schedulers.ReduceLROnPlateau(sgd(), factor=1.0), ValueError, "Factor should be < 1"),
    (lambda: schedulers.ReduceLROnPlateau(sgd(), mode="x"), ValueError, "mode x is unknown!"),
    (lambda: schedulers.CyclicLR(sgd(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
    (lambda: schedulers.OneCycleLR(sgd(), 0.1), ValueError, "You must define either total_steps"),
    (lambda: schedulers.OneCycleLR(sgd(), 0.1, 5, pct_start=2), ValueError, "Expected float"),
    (lambda: schedulers.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "positive integer T_0"),
    (lambda: schedulers.LRScheduler(sgd()), NotImplementedError, None),
])
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_members_share_an_optimizer():
    one, other = sgd(), sgd()
    members = [schedulers.ConstantLR(one), schedulers.ConstantLR(other)]
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        schedulers.SequentialLR(one, members, [2])
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        schedulers.ChainedScheduler(members)
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        schedulers.SequentialLR(one, [members[0], schedulers.ReduceLROnPlateau(one)], [2])


def test_one_cycle_ends():
    optimizer = sgd(momentum=0.9)
    scheduler = schedulers.OneCycleLR(optimizer, 0.1, total_steps=2)
    optimizer.step()
    with pytest.raises(ValueError, match=r"Tried to step 3 times\. The specified number of total"):
        for _ in range(3):
            scheduler.step()


def test_fractional_restarts():
    optimizer = sgd(lr=1.0)
    scheduler = schedulers.CosineAnnealingWarmRestarts(optimizer, 2)
    scheduler.step(0.5)
    assert scheduler.get_last_lr()[0] == pytest.approx((1 + 2**-0.5) / 2)
    with pytest.raises(ValueError, match="Expected non-negative epoch"):
        scheduler.step(-1)
