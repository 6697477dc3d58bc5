"""GradScaler: the scale over a sequence of steps, what it refuses, and its state."""
from __future__ import annotations

import copy
import pickle

import pytest

import flambeau
from flambeau.amp import GradScaler

inf = float("inf")


@pytest.fixture
def weight():
    return flambeau.nn.Parameter(flambeau.ones(2))


@pytest.fixture
def optimizer(weight):
    return flambeau.optim.SGD([weight], lr=0.1)


def step(scaler, optimizer, weight, slope):
    optimizer.zero_grad()
    scaler.scale((weight * slope).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_scale_over_steps(weight, optimizer):
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    scales = []
    for slope in (1.0, 1.0, 1.0, inf, 1.0, 1.0):
        step(scaler, optimizer, weight, slope)
        scales.append((scaler.get_scale(), scaler._get_growth_tracker()))
    assert scales == [(4.0, 1), (8.0, 0), (8.0, 1), (4.0, 0), (4.0, 1), (8.0, 0)]
    assert flambeau.allclose(weight, flambeau.full((2,), 0.5))      # five steps of 0.1


def test_the_scale_does_not_grow_to_infinity(weight, optimizer):
    scaler = GradScaler("cpu", init_scale=2.0 ** 127, growth_interval=1)
    step(scaler, optimizer, weight, 0.0)
    assert scaler.get_scale() == 2.0 ** 127


def test_unscale_before_step(weight, optimizer):
    scaler = GradScaler("cpu", init_scale=1024.0)
    scaler.scale((3 * weight).sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    assert scaler.get_scale() == 1024.0


def test_each_optimizer_is_judged_alone(weight, optimizer):
    other = flambeau.nn.Parameter(flambeau.ones(2))
    second = flambeau.optim.SGD([other], lr=0.1)
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale((weight * inf).sum() + other.sum()).backward()
    scaler.step(optimizer)
    scaler.step(second)
    scaler.update()
    assert weight.tolist() == [1.0, 1.0] and flambeau.allclose(other, flambeau.full((2,), 0.9))
    assert scaler.get_scale() == 1.0


def test_outputs_may_nest():
    scaler = GradScaler("cpu", init_scale=2.0)
    found = scaler.scale([flambeau.ones(1), (flambeau.ones(1),)])
    assert type(found) is list and type(found[1]) is tuple and found[1][0].item() == 2.0
    with pytest.raises(ValueError, match="outputs must be a Tensor"):
        scaler.scale(3)


def test_order_of_calls_is_checked(weight, optimizer):
    scaler = GradScaler("cpu")
    for call in (lambda: scaler.unscale_(optimizer), scaler.update,
                 lambda: scaler.step(optimizer)):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(weight.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: None)


def test_new_scale(weight, optimizer):
    scaler = GradScaler("cpu")
    scaler.scale(weight.sum())
    scaler.update(8.0)
    assert scaler.get_scale() == 8.0
    scaler.update(flambeau.tensor(16.0))
    assert scaler.get_scale() == 16.0
    with pytest.raises(AssertionError, match="new_scale should be"):
        scaler.update(flambeau.ones(2))


def test_float16_gradients_are_refused():
    weight = flambeau.nn.Parameter(flambeau.ones(2, dtype=flambeau.float16))
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(flambeau.optim.SGD([weight], lr=0.1))


def test_state(weight, optimizer):
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=3)
    step(scaler, optimizer, weight, 1.0)
    state = scaler.state_dict()
    assert state == {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5,
                     "growth_interval": 3, "_growth_tracker": 1}
    again = GradScaler("cpu")
    again.load_state_dict(state)
    for other in (again, pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        again.load_state_dict({})


def test_disabled(weight, optimizer):
    scaler = GradScaler("cpu", enabled=False)
    assert scaler.scale(weight) is weight and scaler.get_scale() == 1.0
    assert scaler.state_dict() == {} and not scaler.is_enabled()
    weight.sum().backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert flambeau.allclose(weight, flambeau.full((2,), 0.9))
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not GradScaler().is_enabled()
