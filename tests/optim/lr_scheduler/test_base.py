"""Counting steps, setting rates, the warnings about both."""
import gc
import warnings
import weakref

import pytest
from schedule_tests import rates, sgd

import flambeau as torch
from flambeau.optim import lr_scheduler as schedulers


class Thirds(schedulers.LRScheduler):
    def get_lr(self):
        return [group["lr"] / 3 for group in self.optimizer.param_groups]


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
    (lambda: schedulers.LRScheduler(sgd()), NotImplementedError, None),
])
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_scheduler_is_one_method():
    """It is called when the scheduler is made, too."""
    scheduler = Thirds(sgd(lr=9.0))
    assert rates(scheduler, 2) == [3.0, 1.0, 1 / 3]
    assert scheduler.last_epoch == 2 and scheduler.base_lrs == [9.0]
    assert scheduler.optimizer.param_groups[0]["initial_lr"] == 9.0


def test_state_is_all_but_the_optimizer():
    scheduler = Thirds(sgd(lr=9.0))
    state = scheduler.state_dict()
    assert state == {"base_lrs": [9.0], "last_epoch": 0, "_step_count": 1, "_is_initial": False,
                     "_get_lr_called_within_step": False, "_last_lr": [3.0]}


def test_an_optimizer_does_not_live_because_of_its_schedulers_notes():
    optimizer = sgd()
    schedulers.StepLR(optimizer, 1)
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert gone() is None


def test_two_schedulers_wrap_step_once():
    optimizer = sgd()
    schedulers.StepLR(optimizer, 1)
    step = optimizer.step
    schedulers.ExponentialLR(optimizer, 0.5)
    assert optimizer.step is step
