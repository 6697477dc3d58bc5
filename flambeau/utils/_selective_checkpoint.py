"""Selective checkpointing: a policy says which ops of a function keep their results."""
from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import OpOverload, TorchDispatchMode, aten

SAC_IGNORED_OPS = {aten.detach.default}     # ops that are always computed again


class CheckpointPolicy(enum.Enum):
    """What to do with the result of an op: the forms with MUST are not to be overruled."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE,
        CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD}


class SelectiveCheckpointContext:
    """What a policy is told: is this the second run?"""

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """A result kept for the second run, and the version that it had."""

    def __init__(self, value: Any, checked: bool):
        self.value = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) and checked else None

    def take(self) -> Any:
        if self.version is not None and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been "
                               "mutated")
        return self.value


class _Selective(TorchDispatchMode):
    """Asks the policy about each op of one run."""

    is_recompute = False

    def __init__(self, policy: Callable[..., CheckpointPolicy], storage: Any, mutable: bool):
        super().__init__()
        self.policy, self.storage, self.mutable = policy, storage, mutable

    def keeps(self, func: OpOverload, args: Any, kwargs: Any) -> bool:
        """Is the result of this call to be kept?"""
        if func in SAC_IGNORED_OPS or func._schema.is_mutable or func.is_view:
            return False
        context = SelectiveCheckpointContext(is_recompute=self.is_recompute)
        policy = self.policy(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        return policy in KEPT


class _FirstRun(_Selective):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self.keeps(func, args, kwargs):
            self.storage[func].append(_pytree.tree_map(
                lambda value: _Kept(value, not self.mutable), result))
        return result


class _SecondRun(_Selective):
    is_recompute = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.keeps(func, args, kwargs):
            return func(*args, **kwargs)
        kept = self.storage.get(func)
        if not kept:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        return _pytree.tree_map(_Kept.take, kept.pop(0))


def create_selective_checkpoint_contexts(policy_fn_or_list: Any,
                                         allow_cache_entry_mutation: bool = False) -> Any:
    """The two contexts of a `context_fn` that keep the results of some ops: those in a list of
    overloads (`torch.ops.aten.mm.default`), or those for which `policy_fn(context, op, *args)`
    says so. Kept results may not be written to unless `allow_cache_entry_mutation`.

    >>> from functools import partial
    >>> import flambeau
    >>> from flambeau.utils.checkpoint import checkpoint
    >>> from flambeau.utils._python_dispatch import aten
    >>> x = flambeau.ones(2, 2, requires_grad=True)
    >>> keep = partial(create_selective_checkpoint_contexts, [aten.exp.default])
    >>> y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=keep)
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                raise ValueError("Expected op in `op_list` to be an OpOverload but got: "
                                 f"{op} of type {type(op)}. ")
        listed = set(policy_fn_or_list)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in listed else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Any = defaultdict(list)
    return (_FirstRun(policy, storage, allow_cache_entry_mutation),
            _SecondRun(policy, storage, allow_cache_entry_mutation))
