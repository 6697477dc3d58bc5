"""Custom functions under forward mode and vmap."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor, basis, tensor_types
from flambeau.transforms.batching import BatchedTensor, BatchLevel
from flambeau.transforms.forward import ForwardLevel

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
                               "support. Please override and implement the vmap staticmethod or "
                               "set generate_vmap_rule=True.")
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
    from flambeau.autograd.function import observers
    seen: list[Any] = []
    versions = [None if t is None else t._version for t in tangents]
    watching = observers.set(seen)
    try:
        output = _below(cls, args, stack)
    finally:
        observers.reset(watching)
    node, dirty, without = seen[0]
    token = levels.set(stack[:-1])
    try:
        given = [basis.zeros_like(a) if t is None and type(a) in tensor_types
                 and a.is_floating_point() and node.materialize_grads else t
                 for a, t in zip(args, tangents)]
        node._in_forward = True
        found = cls.jvp(node, *given)
        node._in_forward = False
    finally:
        levels.reset(token)
    outputs = output if isinstance(output, tuple) else (output,)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(outputs):
        raise RuntimeError(f"{cls.__name__}'s jvp returned {len(found)} tangents for "
                           f"{len(outputs)} outputs")
    for position, (one, tangent) in enumerate(zip(outputs, found)):
        if isinstance(one, Tensor):
            _check_tangent(position, one, tangent, args, given, versions, dirty, without)
            level.set_tangent(one, tangent)
    return output


def _check_tangent(position: int, output: Tensor, tangent: Any, args: Any, given: Any,
                   versions: Any, dirty: set[int], without: set[int]) -> None:
    """A tangent must do what its output does: be absent, be written in place, or be a view."""
    if id(output) in without or not (output.is_floating_point() or output.is_complex()):
        if tangent is not None:
            raise RuntimeError(f"A custom Function's jvp returned a tangent for output {position}, "
                               "which is not differentiable. You should return None at that "
                               "position instead.")
        return
    for arg, own, version in zip(args, given, versions):
        if own is None or type(arg) not in tensor_types:
            continue
        if output is arg and id(output) in dirty:
            if tangent is not own or (version is not None and own._version == version):
                raise RuntimeError("An inplace custom Function is not modifying the forward mode "
                                   "gradients inplace. If the forward is modifying an input "
                                   "inplace, then the jvp function must modify the corresponding "
                                   "gradient inplace.")
        elif _views(output, arg):
            if tangent is None or not _views(tangent, own):
                raise RuntimeError("A custom Function's forward is returning a view (or an input "
                                   "as-is) but the jvp is not returning a view.")


def _views(tensor: Tensor, other: Tensor) -> bool:
    """Does `tensor` look at the memory of `other`?"""
    base = tensor._base
    return base is not None and (base is other or base is other._base)
