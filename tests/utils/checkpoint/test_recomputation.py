"""Checkpoints: the function runs again when its gradient is wanted."""
import contextlib

import pytest
from checkpoint_cases import Counted, gradient

import flambeau
from flambeau.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def test_nested():
    inner = Counted(lambda x: x.sin().exp())
    outer = Counted(lambda x: checkpoint(inner, x.cos(), use_reentrant=False).tanh())
    x = flambeau.linspace(0, 1, 4)
    found = gradient(lambda x: checkpoint(outer, x, use_reentrant=False), x)
    flambeau.testing.assert_close(found, gradient(lambda x: x.cos().sin().exp().tanh(), x))
    assert outer.runs == 2


def test_second_order():
    x = flambeau.tensor([0.3], dtype=flambeau.float64, requires_grad=True)
    y = checkpoint(flambeau.sin, x, use_reentrant=False)
    first, = flambeau.autograd.grad(y, x, create_graph=True)
    second, = flambeau.autograd.grad(first, x)
    flambeau.testing.assert_close(second, -flambeau.sin(x.detach()))


def test_early_stop():
    class Last(flambeau.autograd.Function):
        runs = 0

        @staticmethod
        def forward(ctx, x):
            Last.runs += 1
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g
    x = flambeau.ones(2, requires_grad=True)
    checkpoint(lambda x: Last.apply(x.exp()), x, use_reentrant=False).sum().backward()
    assert Last.runs == 1
    with set_checkpoint_early_stop(False):
        y = checkpoint(lambda x: Last.apply(x.exp()), x, use_reentrant=False)
    y.sum().backward()
    assert Last.runs == 3


def test_another_number_of_tensors():
    two, three = (lambda x: x.sin().exp()), (lambda x: x.sin().exp().sin())
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        checkpoint(Counted(three, two), x, use_reentrant=False).sum().backward()
    checkpoint(Counted(two, three), x, use_reentrant=False).sum().backward()
    with set_checkpoint_early_stop(False), pytest.raises(
            CheckpointError, match="trying to save more tensors during recomputation"):
        checkpoint(Counted(two, three), x, use_reentrant=False).sum().backward()


def test_other_tensors():
    def make():
        return Counted(lambda x: x.sin().exp(), lambda x: x.sin() * flambeau.ones(2, 1))
    x = flambeau.ones(1, requires_grad=True)
    with pytest.raises(CheckpointError, match="have different metadata"):
        checkpoint(make(), x, use_reentrant=False).sum().backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(
            CheckpointError, match="You are seeing this error because you passed `debug=True`"):
        checkpoint(make(), x, use_reentrant=False).sum().backward()
    y = checkpoint(make(), x, use_reentrant=False, determinism_check="none")
    with contextlib.suppress(RuntimeError):
        y.sum().backward()


def test_one_run_for_several_passes():
    def two_stages(x):
        y = x.sin().cos()
        return y, y.sin().cos()
    f = Counted(two_stages)
    x = flambeau.rand(3, requires_grad=True)
    y, z = checkpoint(f, x, use_reentrant=False)
    with GraphExecGroup():
        g, = flambeau.autograd.grad(z, (y,), (flambeau.ones(3),))
        flambeau.autograd.grad(y, (x,), (g,))
    assert f.runs == 2
