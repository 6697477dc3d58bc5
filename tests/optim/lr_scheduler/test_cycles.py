"""Schedulers that go up and down."""
import math

import pytest
from schedule_tests import ScheduleTests, rates, sgd

from flambeau.optim import lr_scheduler as schedulers


class TestSchedules(ScheduleTests):
    names = ("cyclic", "cyclic range", "cyclic function", "restarts", "longer restarts",
             "one cycle", "one cycle, linear", "one cycle, three phases")


def test_a_triangle():
    scheduler = schedulers.CyclicLR(sgd(), 1.0, 3.0, step_size_up=2, step_size_down=4,
                                    cycle_momentum=False)
    assert rates(scheduler, 7) == pytest.approx([1, 2, 3, 2.5, 2, 1.5, 1, 2])


def test_momentum_goes_the_other_way():
    optimizer = sgd(momentum=0.5)
    scheduler = schedulers.CyclicLR(optimizer, 0.1, 0.3, 2, base_momentum=0.6, max_momentum=0.8)
    found = []
    for _ in range(4):
        found.append(optimizer.param_groups[0]["momentum"])
        rates(scheduler, 1)
    assert found == pytest.approx([0.8, 0.7, 0.6, 0.7])


def test_restarts_get_longer():
    scheduler = schedulers.CosineAnnealingWarmRestarts(sgd(lr=1.0), 2, T_mult=2)
    half = lambda period: [(1 + math.cos(math.pi * t / period)) / 2 for t in range(period)]
    assert rates(scheduler, 6) == pytest.approx([*half(2), *half(4), 1.0])


def test_one_cycle_rises_from_a_part_of_the_rate_and_falls_far_below_it():
    scheduler = schedulers.OneCycleLR(sgd(), 1.0, 11, pct_start=0.5, div_factor=10,
                                      final_div_factor=100, anneal_strategy="linear",
                                      cycle_momentum=False)
    found = rates(scheduler, 10)
    assert found[0] == pytest.approx(0.1) and found[-1] == pytest.approx(0.001)
    assert max(found) == pytest.approx(0.9, abs=0.15)


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


@pytest.mark.parametrize("make, error, message", [
    (lambda: schedulers.CyclicLR(sgd(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
    (lambda: schedulers.CyclicLR(sgd(), [0.1, 0.2], 0.2), ValueError, "must have the same length"),
    (lambda: schedulers.OneCycleLR(sgd(), 0.1), ValueError, "You must define either total_steps"),
    (lambda: schedulers.OneCycleLR(sgd(), 0.1, 5, pct_start=2), ValueError, "Expected float"),
    (lambda: schedulers.OneCycleLR(sgd(), 0.1, 0), ValueError, "Expected positive integer"),
    (lambda: schedulers.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "positive integer T_0"),
    (lambda: schedulers.CosineAnnealingWarmRestarts(sgd(), 2, 0), ValueError, "integer T_mult"),
])
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_state_without_the_function_of_the_scale_is_refused():
    cyclic = schedulers.CyclicLR(sgd(momentum=0.9), base_lr=0.01, max_lr=0.1)
    with pytest.raises(KeyError, match="_scale_fn_custom"):
        cyclic.load_state_dict({})
    cyclic.load_state_dict(cyclic.state_dict())
