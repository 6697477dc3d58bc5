import contextlib
from functools import partial

import pytest

import flambeau
from flambeau.utils._python_dispatch import TorchDispatchMode, aten
from flambeau.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def gradient(function, x):
    x = x.detach().clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


class Counted:
    """A function, and how often it has run."""

    def __init__(self, *functions):
        self.functions, self.runs = functions, 0

    def __call__(self, *args, **kwargs):
        function = self.functions[min(self.runs, len(self.functions) - 1)]
        self.runs += 1
        return function(*args, **kwargs)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_are_the_same(use_reentrant):
    f = Counted(lambda x: (x.exp() * x.sin()).tanh())
    x = flambeau.linspace(-1, 1, 5)
    expected = gradient(f.functions[0], x)
    found = gradient(lambda x: checkpoint(f, x, use_reentrant=use_reentrant), x)
    flambeau.testing.assert_close(found, expected)
    assert f.runs == 2


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_random_numbers_are_the_same(use_reentrant):
    def f(x):
        return flambeau.nn.functional.dropout(x, 0.5)
    x = flambeau.ones(100, requires_grad=True)
    y = checkpoint(f, x, use_reentrant=use_reentrant)
    flambeau.rand(3)
    y.sum().backward()
    assert bool(((x.grad != 0) == (y != 0)).all())


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


def test_wrong_arguments():
    x = flambeau.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(flambeau.exp, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint(flambeau.exp, x, use_reentrant=True, foo=3)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(flambeau.exp, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(flambeau.exp, x, use_reentrant=False, determinism_check="x")
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\)"):
        flambeau.autograd.grad(checkpoint(flambeau.exp, x, use_reentrant=True).sum(), x)


def test_keyword_and_other_arguments():
    x = flambeau.ones(2, requires_grad=True)
    y = checkpoint(lambda a, *, scale, flag: {"out": a * scale if flag else a}, x, flag=True,
                   scale=flambeau.tensor(3.0), use_reentrant=False)
    y["out"].exp().sum().backward()
    flambeau.testing.assert_close(x.grad, 3 * flambeau.exp(flambeau.tensor([3.0, 3.0])))


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


def test_sequential():
    x = flambeau.linspace(0, 1, 3)
    steps = [flambeau.sin, flambeau.exp, flambeau.tanh]
    found = gradient(lambda x: checkpoint_sequential(steps, 2, x, use_reentrant=False), x)
    flambeau.testing.assert_close(found, gradient(lambda x: x.sin().exp().tanh(), x))


def test_selective_keeps_what_the_policy_says():
    ran = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran.append(str(func))
            return func(*args, **(kwargs or {}))
    w = flambeau.rand(3, 3)

    def f(x):
        return (x @ w).sin().exp()
    keep = partial(create_selective_checkpoint_contexts, [aten.mm.default])
    x = flambeau.rand(3, 3)
    found = gradient(lambda x: checkpoint(f, x, use_reentrant=False, context_fn=keep), x)
    flambeau.testing.assert_close(found, gradient(f, x))

    def policy(context, op, *args, **kwargs):
        assert isinstance(context.is_recompute, bool)
        return CheckpointPolicy.PREFER_SAVE
    everything = partial(create_selective_checkpoint_contexts, policy)
    x = x.requires_grad_()
    y = checkpoint(f, x, use_reentrant=False, context_fn=everything)
    with Log():
        y.sum().backward()
    assert not any(name in ran for name in ("aten.sin.default", "aten.exp.default"))
    flambeau.testing.assert_close(x.grad, found)


def test_selective_refuses_changed_results():
    def f(x):
        y = x.exp()
        y.mul_(2)
        return y.sin()
    keep = partial(create_selective_checkpoint_contexts, [aten.exp.default])
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="has been mutated"):
        checkpoint(f, x, use_reentrant=False, context_fn=keep).sum().backward()
    with pytest.raises(TypeError, match="must be either a function or a list"):
        create_selective_checkpoint_contexts(3)


def test_a_policy_is_asked_once_about_each_call():
    asked = []

    def policy(context, op, *args):
        asked.append((op, context.is_recompute, context.op_output.shape))
        return CheckpointPolicy.MUST_SAVE if op is aten.sin.default else \
            CheckpointPolicy.PREFER_RECOMPUTE
    x = flambeau.linspace(0.1, 1, 3).requires_grad_()
    keep = partial(create_selective_checkpoint_contexts, policy)
    y = checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=keep)
    y.sum().backward(retain_graph=True)
    assert asked == [(op.default, False, (3,)) for op in (aten.sin, aten.cos, aten.exp)]
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()


def test_lists_of_ops_to_keep_hold_overloads():
    with pytest.raises(ValueError, match="update the OpOverloadPacket to a specific OpOverload"):
        create_selective_checkpoint_contexts([aten.sin])
