"""What every scheduler has to pass: the rates that PyTorch's sets; a copy that loads the state goes
on as the original does.

A test file gets these tests by a class of its own:

    class TestSchedules(ScheduleTests):
        names = ("step", "multistep")           # of `optim_cases.SCHEDULERS`
"""

import functools
import json
from pathlib import Path

import pytest
from optim_cases import SCHEDULERS, _Both, schedule, scheduler_cases

import flambeau as torch

DATA = Path(__file__).resolve().parents[1] / "data" / "optim_schedules.json"


@functools.cache
def recorded():
    return json.loads(DATA.read_text())


def sgd(lr=0.1, **options):
    return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=lr, **options)


def rates(scheduler, steps, *given):
    """The learning rates of the first group, now and after each step."""
    found = [scheduler.get_last_lr()[0]]
    for _ in range(steps):
        scheduler.optimizer.step()
        scheduler.step(*given)
        found.append(scheduler.get_last_lr()[0])
    return found


class ScheduleTests:
    names: tuple[str, ...]

    def pytest_generate_tests(self, metafunc):
        tables = {"run": [case for case in scheduler_cases() if case[1] in self.names],
                  "name": self.names}
        for argument, values in tables.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, values, ids=str)

    def test_schedule(self, run):
        key, name, way = run
        for mine, theirs in zip(schedule(torch, name, way), recorded()[key], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-10, abs=1e-14)

    def test_state_dict_resumes(self, name):
        def made():
            groups = [{"params": [torch.ones(1, requires_grad=True)], "lr": lr}
                      for lr in (0.1, 0.02)]
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
