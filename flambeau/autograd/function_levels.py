"""Custom functions under forward mode and vmap."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from flambeau.transforms.batching import BatchedTensor, BatchLevel
from flambeau.transforms.forward import ForwardLevel
from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor, basis, tensor_types

VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])


def apply_under_level(cls: Any, args: tuple[Any, ...]) -> Any:
    """What the innermost level of this thread makes of a call; NotImplemented if nothing."""
    stack = levels.get()
    level = stack[-1]
    if isinstance(level, ForwardLevel):
        return _forward(cls, args, level, stack)
    if isinstance(level, BatchLevel):
        mine = [type(a) is BatchedTensor and a._level is level for a in args]
        if not any(mine):
            return _below(cls, args, stack)
        if cls.generate_vmap_rule:
            if _has_vmap(cls):
                raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both "
                                   "generate_vmap_rule=True and an overriden vmap staticmethod. "
                                   "Please set generate_vmap_rule=False or delete the overriden "
                                   "vmap staticmethod to avoid ambiguity.")
            return NotImplemented
        if not _has_vmap(cls):
            raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap "
                               "support. Please override and implement the vmap staticmethod or set "
                               "generate_vmap_rule=True.")
        return _batched(cls, args, level, stack)
    return NotImplemented


def _has_vmap(cls: Any) -> bool:
    from flambeau.autograd.function import Function
    return cls.vmap is not Function.vmap


def _below(cls: Any, args: tuple[Any, ...], stack: Any) -> Any:
    token = levels.set(stack[:-1])
    try:
        return cls.apply(*args)
    finally:
        levels.reset(token)


def _batched(cls: Any, args: tuple[Any, ...], level: BatchLevel, stack: Any) -> Any:
    pairs = [level.unwrap(a) for a in args]
    token = levels.set(stack[:-1])
    try:
        info = VmapInfo(level.size, level.randomness)
        answer = cls.vmap(info, tuple(d for _, d in pairs), *[v for v, _ in pairs])
    finally:
        levels.reset(token)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and "
                           "out_dims with pytree structure compatible with the output.")
    output, dims = answer
    if isinstance(output, tuple):
        dims = dims if isinstance(dims, tuple) else (dims,) * len(output)
        return tuple(level.wrap(o, d) if isinstance(o, Tensor) else o
                     for o, d in zip(output, dims))
    return level.wrap(output, dims) if isinstance(output, Tensor) else output


def _forward(cls: Any, args: tuple[Any, ...], level: ForwardLevel, stack: Any) -> Any:
    tangents = [level.tangent(a) if type(a) in tensor_types else None for a in args]
    if all(t is None for t in tangents):
        return _below(cls, args, stack)
    kept: list[Any] = []

    class Observed(cls):  # the same Function, whose context we get to see
        pass
    Observed.__name__, Observed.__qualname__ = cls.__name__, cls.__qualname__
    Observed._backward_cls.__name__ = cls._backward_cls.__name__
    Observed._backward_cls._forward_cls = cls
    original = Observed._backward_cls

    def remember() -> Any:
        node = original()
        kept.append(node)
        return node
    Observed._backward_cls = remember
    output = _below(Observed, args, stack)
    node = kept[0]
    token = levels.set(stack[:-1])
    try:
        given = [basis.zeros_like(a) if t is None and type(a) in tensor_types
                 and a.is_floating_point() and node.materialize_grads else t
                 for a, t in zip(args, tangents)]
        saved, node._in_forward = node._in_forward, True
        if node.saved_for_forward is None:
            node._in_forward = saved
        found = cls.jvp(node, *given)
        node._in_forward = False
    finally:
        levels.reset(token)
    outputs = output if isinstance(output, tuple) else (output,)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(outputs):
        raise RuntimeError(f"{cls.__name__}'s jvp returned {len(found)} tangents for "
                           f"{len(outputs)} outputs")
    for one, tangent in zip(outputs, found):
        if isinstance(one, Tensor) and tangent is not None:
            own = one._tangents
            if own is not None and level in own and own[level] is not tangent:
                own[level].copy_(tangent) if own[level]._base is not None else None
            level.set_tangent(one, tangent)
    return output
