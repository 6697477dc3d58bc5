"""Schedulers that let the learning rate fall, or rise, once."""
import math
import pickle

import pytest
from schedule_tests import ScheduleTests, rates, sgd

from flambeau.optim import lr_scheduler as schedulers


class TestSchedules(ScheduleTests):
    names = ("lambda", "multiplicative", "step", "multistep", "constant", "linear", "exponential",
             "cosine", "polynomial")


@pytest.mark.parametrize("make, closed", [
    (lambda o: schedulers.LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 1 / (t + 1)),
    (lambda o: schedulers.MultiplicativeLR(o, lambda t: t), math.factorial),
    (lambda o: schedulers.StepLR(o, 2, 0.5), lambda t: 0.5 ** (t // 2)),
    (lambda o: schedulers.MultiStepLR(o, [3, 1, 3], 0.5),
     lambda t: 0.5 ** ((t >= 1) + 2 * (t >= 3))),
    (lambda o: schedulers.ConstantLR(o, 0.25, 3), lambda t: 0.25 if t < 3 else 1),
    (lambda o: schedulers.LinearLR(o, 0.5, 0.8, 3), lambda t: 0.5 + 0.1 * min(t, 3)),
    (lambda o: schedulers.ExponentialLR(o, 0.9), lambda t: 0.9**t),
    (lambda o: schedulers.CosineAnnealingLR(o, 4, 0.2),
     lambda t: 0.2 + 0.4 * (1 + math.cos(math.pi * t / 4))),
    (lambda o: schedulers.PolynomialLR(o, 4, 2.0), lambda t: (1 - min(t, 4) / 4) ** 2),
])
def test_rates_are_those_of_the_closed_form(make, closed):
    assert rates(make(sgd(lr=1.0)), 9) == pytest.approx([closed(t) for t in range(10)])


@pytest.mark.parametrize("make", [
    lambda o: schedulers.StepLR(o, 2), lambda o: schedulers.ExponentialLR(o, 0.5),
    lambda o: schedulers.CosineAnnealingLR(o, 4), lambda o: schedulers.PolynomialLR(o, 4, 2.0),
    lambda o: schedulers.LinearLR(o), lambda o: schedulers.MultiStepLR(o, [1, 4])])
@pytest.mark.filterwarnings("ignore")
def test_a_step_to_an_epoch_takes_the_closed_form(make):
    stepped = rates(make(sgd()), 5)
    scheduler = make(sgd())
    for epoch in (5, 2, 0, 3):
        scheduler.optimizer.step()
        scheduler.step(epoch)
        assert scheduler.get_last_lr()[0] == pytest.approx(stepped[epoch])


@pytest.mark.parametrize("make, error, message", [
    (lambda: schedulers.LambdaLR(sgd(), [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got"),
    (lambda: schedulers.MultiplicativeLR(sgd(), 5), TypeError, "should be a function, but got int"),
    (lambda: schedulers.ConstantLR(sgd(), 2.0), ValueError, "Constant multiplicative factor"),
    (lambda: schedulers.LinearLR(sgd(), 0.0), ValueError, "Starting multiplicative factor"),
    (lambda: schedulers.LinearLR(sgd(), 0.5, 2.0), ValueError, "Ending multiplicative factor"),
])
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


class Falling:
    def __init__(self, by):
        self.by = by

    def __call__(self, t):
        return self.by**t


def test_of_functions_only_objects_are_saved():
    assert schedulers.LambdaLR(sgd(), lambda t: t).state_dict()["lr_lambdas"] == [None]
    saved = schedulers.LambdaLR(sgd(), Falling(0.5)).state_dict()
    assert pickle.loads(pickle.dumps(saved))["lr_lambdas"] == [{"by": 0.5}]
    other = schedulers.LambdaLR(sgd(), Falling(0.1))
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].by == 0.5
    assert len(saved["lr_lambdas"]) == 1
