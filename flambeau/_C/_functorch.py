"""What a tensor inside `vmap` is: one slice, whatever the slice, of a larger one.

>>> def look(x):
...     print(is_batchedtensor(x), maybe_get_bdim(x), get_unwrapped(x).shape)
...     return x
>>> _ = torch.vmap(look, 1)(torch.ones(3, 2))
True 1 torch.Size([3, 2])
"""
from __future__ import annotations

from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor
from flambeau.func.batch import _add_batch_dim, _remove_batch_dim
from flambeau.transforms.batching import BatchedTensor

__all__ = ["_add_batch_dim", "_remove_batch_dim", "get_unwrapped", "is_batchedtensor",
           "is_functorch_wrapped_tensor", "maybe_current_level", "maybe_get_bdim",
           "maybe_get_level"]


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
