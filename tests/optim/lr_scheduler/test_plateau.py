"""A scheduler that waits for a measure to stop improving."""
import pytest
from schedule_tests import ScheduleTests, sgd

import flambeau as torch
from flambeau.optim import lr_scheduler as schedulers


class TestSchedules(ScheduleTests):
    names = ("plateau", "plateau, max")


def rates(measures, **options):
    scheduler = schedulers.ReduceLROnPlateau(sgd(lr=1.0), factor=0.5, **options)
    found = []
    for measure in measures:
        scheduler.optimizer.step()
        scheduler.step(measure)
        found.append(scheduler.get_last_lr()[0])
    return found


def test_patience_and_cooldown():
    assert rates([3, 3, 3, 3, 3], patience=1) == [1, 1, 0.5, 0.5, 0.25]
    assert rates([3] * 6, patience=0, cooldown=2) == [1, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert rates([3, 2, 1], patience=0) == [1, 1, 1]


@pytest.mark.parametrize("options, better, worse", [
    ({"threshold": 0.1}, 8.9, 9.1), ({"threshold": 0.5, "threshold_mode": "abs"}, 9.4, 9.6),
    ({"mode": "max", "threshold": 0.1}, 11.1, 10.9),
    ({"mode": "max", "threshold": 0.5, "threshold_mode": "abs"}, 10.6, 10.4)])
def test_what_counts_as_better(options, better, worse):
    assert rates([10.0, better], patience=0, **options) == [1, 1]
    assert rates([10.0, worse], patience=0, **options) == [1, 0.5]


def test_least_rates_and_changes():
    assert rates([1] * 4, patience=0, min_lr=0.3) == [1, 0.5, 0.3, 0.3]
    assert rates([1] * 3, patience=0, eps=0.6) == [1, 1, 1]


def test_a_measure_may_be_a_tensor_and_not_a_number():
    nan = float("nan")
    assert rates([torch.tensor(1.0), torch.tensor(nan), nan], patience=1) == [1, 1, 0.5]


@pytest.mark.parametrize("options, error, message", [
    ({"factor": 1.0}, ValueError, "Factor should be < 1"),
    ({"mode": "x"}, ValueError, "mode x is unknown!"),
    ({"threshold_mode": "x"}, ValueError, "threshold mode x is unknown!"),
    ({"min_lr": [0.1, 0.2]}, ValueError, "expected 1 min_lrs, got 2"),
])
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        schedulers.ReduceLROnPlateau(sgd(), **options)
