"""Steps of one's own, and averages from time to time."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.optim import PostLocalSGDOptimizer


class Averager:
    """Counts, and writes down what it is to average."""

    def __init__(self):
        self.step, self.seen = 0, []

    def average_parameters(self, params):
        self.step += 1
        self.seen.append([list(group["params"]) for group in params])


@pytest.fixture
def made():
    weight = torch.nn.Parameter(torch.ones(2))
    averager = Averager()
    return weight, averager, PostLocalSGDOptimizer(
        torch.optim.SGD([weight], lr=0.1, momentum=0.5), averager)


def test_each_step_is_followed_by_an_average(made):
    weight, averager, optimizer = made
    for _ in range(2):
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert weight.tolist() == pytest.approx([0.75, 0.75]) and weight.grad is None
    assert averager.step == 2 and averager.seen[0] == [[weight]]
    assert optimizer.state[weight]["momentum_buffer"].tolist() == [1.5, 1.5]


def test_the_averages_step_is_part_of_the_state(made):
    weight, averager, optimizer = made
    averager.step = 7
    state = optimizer.state_dict()
    assert state["step"] == 7 and state["param_groups"][0]["lr"] == 0.1
    other = PostLocalSGDOptimizer(torch.optim.SGD([weight], lr=0.5), Averager())
    other.load_state_dict(state)
    assert other.averager.step == 7 and other.optim.param_groups[0]["lr"] == 0.1
    del state["step"]
    with pytest.warns(UserWarning, match="does not contain a step counter for an averager"):
        other.load_state_dict(state)
    assert other.averager.step == 0


def test_it_is_the_other_one(made):
    _, _, optimizer = made
    assert repr(optimizer) == repr(optimizer.optim)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 3})
    assert len(optimizer.param_groups) == len(optimizer.optim.param_groups) == 2
