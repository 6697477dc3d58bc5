"""Nested tensors: batches of tensors whose sizes differ, without padding.

>>> from flambeau import nested
>>> x = nested.nested_tensor([flambeau.ones(2), flambeau.ones(3)])
>>> x * 2
nested_tensor([
  tensor([2., 2.]),
  tensor([2., 2., 2.])
])
>>> nested.to_padded_tensor(x, 0.0)
tensor([[1., 1., 0.],
        [1., 1., 1.]])

With `layout=flambeau.jagged` one dimension of the parts may vary; in sizes it shows as `j1`, `j2` …
"""
from __future__ import annotations

import itertools
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.settings import warn_once
from flambeau.nested import calls
from flambeau.nested.tensors import NestedTensor, join, over_jagged
from flambeau.schema.arguments import bound_by


def _check_layout(layout: Any) -> bool:
    """Is it `jagged`?"""
    if layout not in (None, flambeau.strided, flambeau.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout is flambeau.jagged


def _check_jagged(parts: list[Tensor]) -> None:
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what in ("dim", "dtype", "device"):
        found = {p.dim() if what == "dim" else getattr(p, what) for p in parts}
        if len(found) > 1:
            raise RuntimeError("When constructing a nested tensor, all tensors in list must have "
                               f"the same {what}")
    if not parts[0].dim():
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def _tensors(given: Any, dtype: Any, device: Any, jagged: bool = False) -> list[Tensor]:
    if jagged:
        parts = [t if isinstance(t, Tensor) else flambeau.tensor(t) for t in given]
        if dtype is not None:
            parts = [p.to(dtype) for p in parts]
        _check_jagged(parts)
        return parts
    if not isinstance(given, list | tuple):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in "
                        "nested_tensor")
    if device is not None and flambeau.device(device).type != "cpu":
        raise NotImplementedError(f"nested tensors on device {device}")
    if any(isinstance(t, NestedTensor) for t in given):
        raise RuntimeError("We do not accept nested tensors as input to nested tensors")
    parts = [t if isinstance(t, Tensor) else flambeau.tensor(t) for t in given]
    for i, part in enumerate(parts):
        if part.dim() != parts[0].dim():
            raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. "
                               f"Found dimension {part.dim()} for Tensor at index {i} and "
                               f"dimension {parts[0].dim()} for Tensor at index 0.")
    return parts if dtype is None else [p.to(dtype) for p in parts]


def nested_tensor(tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> NestedTensor:
    """A new nested tensor, a leaf, with copies of the tensors (or lists of numbers) given.

    >>> flambeau.nested.nested_tensor([[1, 2], [3]])
    nested_tensor([
      tensor([1, 2]),
      tensor([3])
    ])
    """
    if layout in (None, flambeau.strided):
        warn_once("The PyTorch API of nested tensors is in prototype stage and will change in the "
                  "near future. We recommend specifying layout=torch.jagged when constructing a "
                  "nested tensor, as this layout receives active development, has better operator "
                  "coverage, and works with torch.compile.")
    parts = [p.detach() for p in _tensors(tensor_list, dtype, device, _check_layout(layout))]
    return join(parts, layout).requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """Tensors (or the slices of one) as a nested tensor; gradients flow to them."""
    if isinstance(ts, NestedTensor):
        if layout is not ts.layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is "
                               "not supported")
        return ts if dtype is None else ts.to(dtype)
    if not isinstance(ts, (Tensor, list, tuple)) or (not isinstance(ts, Tensor) and not all(
            isinstance(t, Tensor) for t in ts)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / "
                        "tuple of tensors ")
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    jagged = _check_layout(layout)
    parts = list(ts.unbind()) if isinstance(ts, Tensor) else ts
    return join(_tensors(parts, dtype, device, jagged), layout, node=(
        "NestedViewFromJaggedBackward0" if jagged else
        "NestedViewFromBufferBackward0" if isinstance(ts, Tensor) else
        "NestedTensorFromTensorListBackward0"))


@bound_by("nested_to_padded_tensor(Tensor input, float padding, int[]? output_size=None) -> Tensor")
def to_padded_tensor(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """An ordinary tensor as large as the largest part (or as `output_size`), filled up with
    `padding`."""
    return input.to_padded_tensor(padding, output_size)


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None,
                              lengths: Tensor | None = None, jagged_dim: int | None = None,
                              min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> NestedTensor:
    """Slices of `values` as a nested tensor with layout `jagged`, without a copy.

    Part i begins at `offsets[i]`; it ends where the next begins, or after `lengths[i]`. Without
    offsets the parts follow each other. `jagged_dim` (1) is the dimension that varies.

    >>> values = flambeau.arange(4.0)
    >>> x = flambeau.nested.nested_tensor_from_jagged(values, flambeau.tensor([0, 1, 4]))
    >>> x.unbind()
    (tensor([0.]), tensor([1., 2., 3.]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is "
                               "required.")
        offsets, lengths = flambeau.tensor([0, *itertools.accumulate(lengths.tolist())]), None
    ragged = 1 if jagged_dim is None else jagged_dim % (values.dim() + 1)
    if not ragged:
        raise RuntimeError("nested_tensor_from_jagged(): the dimension of the parts cannot vary")
    return over_jagged(values, offsets, lengths, ragged, min_seqlen, max_seqlen)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = flambeau.strided
           ) -> NestedTensor:
    """From each slice of `tensor` along its first dimension, `length[i]` items of dimension `dim`
    from `start[i]`."""
    if layout is flambeau.strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(flambeau.narrow(tensor, dim, start, length).unbind(), layout=layout)
    if layout is not flambeau.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    count = len(tensor)
    begins, sizes = ([int(n) for n in v] if isinstance(v, Tensor) else [v] * count
                     for v in (start, length))
    rows = tensor.shape[1]
    starts = [i * rows + begin for i, begin in enumerate(begins)]
    offsets = flambeau.tensor([*starts, *[start + size for start, size in zip(starts, sizes)][-1:]])
    return nested_tensor_from_jagged(tensor.flatten(0, 1), offsets, flambeau.tensor(sizes))


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row of a matrix that the mask selects, with layout `jagged`."""
    if tensor.layout is not flambeau.strided:
        raise RuntimeError("torch.nested.masked_select requires a strided tensor, given "
                           f"{tensor.layout}")
    if mask.layout is not flambeau.strided:
        raise RuntimeError("torch.nested.masked_select requires a strided mask, given "
                           f"{mask.layout}")
    if mask.dtype is not flambeau.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    sizes = mask.expand(tensor.shape).sum(tuple(range(1, tensor.dim())))
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=sizes)


__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor",
           "nested_tensor_from_jagged", "to_padded_tensor"]
