"""What a tensor inside `vmap` is: one slice, whatever the slice, of a larger one.

>>> def look(x):
...     print(is_batchedtensor(x), maybe_get_bdim(x), get_unwrapped(x).shape)
...     return x
>>> _ = torch.vmap(look, 1)(torch.ones(3, 2))
True 1 torch.Size([3, 2])
"""
from __future__ import annotations

import enum
from typing import Any

from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor
from flambeau.func.batch import _add_batch_dim, _remove_batch_dim
from flambeau.transforms.batching import BatchedTensor

__all__ = ["CInterpreter", "RandomnessType", "TransformType", "_add_batch_dim",
           "_remove_batch_dim", "get_unwrapped", "is_batchedtensor",
           "is_functorch_wrapped_tensor", "maybe_current_level", "maybe_get_bdim",
           "maybe_get_level", "peek_interpreter_stack"]


def is_batchedtensor(tensor: Tensor, /) -> bool:
    """Whether this is one slice of a larger tensor."""
    return isinstance(tensor, BatchedTensor)


def is_functorch_wrapped_tensor(tensor: Tensor, /) -> bool:
    """Whether a transform has put something else in the place of the tensor."""
    return is_batchedtensor(tensor)


def get_unwrapped(tensor: Tensor, /) -> Tensor:
    """The tensor of which this is a slice."""
    if not isinstance(tensor, BatchedTensor):
        raise RuntimeError("No wrappers present!")
    return tensor._value


def maybe_get_bdim(tensor: Tensor, /) -> int:
    """The dimension of the slices; -1 where there are none."""
    bdim = tensor._bdim if isinstance(tensor, BatchedTensor) else None
    return -1 if bdim is None else bdim


def maybe_get_level(tensor: Tensor, /) -> int:
    """The number of the `vmap` whose slice this is; -1 where it is none."""
    return tensor._level.number if isinstance(tensor, BatchedTensor) else -1


def maybe_current_level() -> int | None:
    """The number of the innermost transform."""
    return len(levels.get()) or None


# ---- transforms ----------------------------------------------------------------------------------


class TransformType(enum.Enum):
    """Kinds of transforms, for rules of higher-order ops."""
    Torch, Vmap, Grad, Jvp, Functionalize = range(5)


class RandomnessType(enum.Enum):
    """What random ops do in `vmap`."""
    Error, Same, Different = range(3)


class CInterpreter:
    """A transform that is at work: its kind and its number."""

    def __init__(self, level: Any):
        self._level = level

    def key(self) -> TransformType:
        """The kind of transform."""
        from flambeau.transforms.batching import BatchLevel
        return TransformType.Vmap if isinstance(self._level, BatchLevel) else TransformType.Jvp

    def level(self) -> int:
        """The number of the transform."""
        return getattr(self._level, "number", len(levels.get()))

    def batch_size(self) -> int:
        """How many slices there are."""
        return self._level.size

    def randomness(self) -> str:
        """What random ops do."""
        return self._level.randomness


def interpreter_of(level: Any) -> CInterpreter | None:
    """The transform that a level is; None if it is none."""
    from flambeau.transforms.batching import BatchLevel
    from flambeau.transforms.forward import ForwardLevel
    return CInterpreter(level) if isinstance(level, (BatchLevel, ForwardLevel)) else None


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The transforms that are at work, the innermost last."""
    found = [interpreter_of(level) for level in levels.get()]
    return [each for each in found if each is not None] or None


def peek_interpreter_stack() -> CInterpreter | None:
    """The innermost transform that is at work."""
    stack = get_interpreter_stack()
    return stack[-1] if stack else None


def is_gradtrackingtensor(tensor: Tensor, /) -> bool:
    """Whether `torch.func.grad` wraps the tensor: it wraps none."""
    return False


is_functionaltensor = is_gradtrackingtensor
