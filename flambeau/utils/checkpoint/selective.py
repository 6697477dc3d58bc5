"""Selective checkpointing: a policy says which ops of a function keep their results."""
from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import OpOverload, OpOverloadPacket, TorchDispatchMode, aten

SAC_IGNORED_OPS = {                     # ops that are always computed again, and of metadata
    aten.detach.default, aten.is_contiguous.default, aten.is_contiguous.memory_format,
    aten.storage_offset.default, aten.dim.default, aten.numel.default, aten.sym_numel.default,
    aten.sym_storage_offset.default, aten.size.default, aten.stride.default,
    aten.sym_size.default, aten.sym_stride.default}


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


class _VersionWrapper:
    """A result kept for the second run, and the version that it had."""

    def __init__(self, value: Any, checked: bool):
        self.val = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) and checked else None

    def take(self) -> Any:
        if self.version is not None and self.val._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been "
                               "mutated")
        return self.val


_CONSUMED = object()                    # in place of a result that the second run has taken


class _Counting(TorchDispatchMode):
    """Knows which call of an op this is. `storage` has the results kept, by op and call."""

    def __init__(self, storage: dict[Any, dict[int, Any]]):
        super().__init__()
        self.storage = storage
        self.func_counter: dict[Any, int] = defaultdict(int)

    def number(self, func: OpOverload) -> int:
        """How often the op was called before."""
        self.func_counter[func] += 1
        return self.func_counter[func] - 1


class _CachingTorchDispatchMode(_Counting):
    """The first run: asks the policy about each call."""

    def __init__(self, policy_fn: Callable[..., Any], storage: Any, allow_cache_entry_mutation: bool
                 ):
        super().__init__(storage)
        self.policy_fn, self.checked = policy_fn, not allow_cache_entry_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy_fn(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        number = self.number(func)
        if policy in KEPT:
            self.storage[func][number] = _pytree.tree_map(
                lambda value: _VersionWrapper(value, self.checked), result)
        return result


class _CachedTorchDispatchMode(_Counting):
    """The second run: takes what was kept, once."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        number, kept = self.number(func), self.storage.get(func, {})
        if number not in kept:
            return func(*args, **(kwargs or {}))
        result, kept[number] = kept[number], _CONSUMED
        if result is _CONSUMED:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward "
                               "once on any region computed under selective activation checkpoint.")
        return _pytree.tree_map(_VersionWrapper.take, result)

    def __enter__(self) -> Any:
        self.func_counter.clear()               # another backward pass runs the function again
        return super().__enter__()


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
                more = "Please update the OpOverloadPacket to a specific OpOverload.For example, " \
                    "if you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                raise ValueError("Expected op in `op_list` to be an OpOverload but got: "
                                 f"{op} of type {type(op)}. "
                                 f"{more if isinstance(op, OpOverloadPacket) else ''}")
        listed = set(policy_fn_or_list)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in listed else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Any = defaultdict(dict)
    return (_CachingTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
            _CachedTorchDispatchMode(storage))
