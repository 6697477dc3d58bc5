"""A policy says which ops of a function keep their results."""

from functools import partial

import pytest
from checkpoint_cases import gradient

import flambeau
from flambeau.utils._python_dispatch import TorchDispatchMode, aten
from flambeau.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)


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
