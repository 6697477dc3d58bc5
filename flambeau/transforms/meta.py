"""Tensors on device `meta`: a shape and a type, no values.

Such a tensor holds an array as any other, of zeros that take no memory. Its views are views. Other
ops run on it for the geometry of their results, or in miniature where their declaration says the
shape: then nothing of the full size is computed.
"""
from __future__ import annotations

from itertools import repeat
from math import prod
from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau.core import devices
from flambeau.core.autograd.recording import edges_of, record
from flambeau.core.calling import overrides
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, grad_mode
from flambeau.core.shapes import Size, broadcast_shapes
from flambeau.core.tensor import (
    LAZY,
    LEAF,
    SeenAsTensor,
    Tensor,
    alias,
    plain_types,
    tensor_types,
    wrap,
)
from flambeau.kernels.moving import views
from flambeau.ops.inplace import save_anew, type_of_result


class MetaTensor(SeenAsTensor, Tensor):
    """A tensor without values. Users see it as `Tensor` with `device='meta'`."""

    _device = devices.meta


plain_types.discard(MetaTensor)
overrides.internal_types.add(MetaTensor)
MetaTensor.__module__ = "torch"
MetaTensor.__name__ = MetaTensor.__qualname__ = "Tensor"


def memory(extent: int, array_type: np.dtype) -> np.ndarray:
    """A row of zeros that takes no memory: pages that nobody writes to are never laid out."""
    size = extent * array_type.itemsize
    if size < _PAGES:
        row = np.zeros(extent, array_type)
    else:
        import mmap
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            reserved = mmap.mmap(-1, size, flags=flags)
        except OSError:             # more than the system would ever give: then only to be read
            try:
                reserved = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
            except OSError:         # or not even that
                return np.asarray(_UnreadableMemory(size)).view(array_type)
        row = np.frombuffer(reserved, array_type)
    row.flags.writeable = False
    return row


class _UnreadableMemory:
    """Bytes beyond what a process can address: they have a number, and nothing to be read."""

    def __init__(self, size: int) -> None:
        self.__array_interface__ = {
            "shape": (size,), "typestr": "|u1", "version": 3,
            "data": (_NOWHERE.__array_interface__["data"][0], True)}


_NOWHERE = np.zeros(1, np.uint8)
_PAGES = 1 << 16            # bytes; a smaller row is simply made


def meta_array(shape: tuple[int, ...], array_type: np.dtype, strides: Any = None) -> np.ndarray:
    """An array of that shape, type and strides (in bytes; contiguous if None) without memory."""
    if strides is None or min(strides, default=0) < 0:
        return memory(prod(shape), array_type).reshape(shape)
    reach = 0 if 0 in shape else sum([(n - 1) * s for n, s in zip(shape, strides)])
    extent = 1 + reach // array_type.itemsize
    return np.ndarray(shape, array_type, memory(extent, array_type), 0, strides)


def laid_out_as(array: np.ndarray) -> np.ndarray:
    """A hollow array of the geometry of `array`."""
    strides = None if views.is_row_major(array) else array.strides
    return meta_array(array.shape, array.dtype, strides)


def to_meta(tensor: Tensor) -> Tensor:
    """A tensor of the same geometry, type and history without values."""
    result = alias(laid_out_as(tensor._array), MetaTensor)
    if tensor._edge is LEAF:
        result._edge = LEAF
    elif tensor._edge is LAZY:
        result._edge = None if tensor._view.node is None else tensor._view.node
    else:
        result._edge = tensor._edge
    return result


def emptied(tensor: Tensor) -> Tensor:
    """A result of an op, now on meta: what it computed is let go, unless it is a view."""
    if type(tensor) in overrides.sparse_types:      # which have no elements here to let go
        tensor._device = devices.meta
        return tensor
    array = tensor._array
    if array.flags.writeable:
        tensor._array = laid_out_as(array)
        edge = tensor._edge
        if edge is not None and edge is not LEAF and edge is not LAZY:
            save_anew(edge.node, array, tensor)
            saves_on_meta(edge.node)
    tensor.__class__ = MetaTensor
    return tensor


def check_together(tensors: Any) -> None:
    """Do the shapes of these broadcast, and are they on one device? Single numbers may be on the
    CPU."""
    found = [t for t in tensors if type(t) in tensor_types]
    common = [1] * max([t._array.ndim for t in found])
    for place, tensor in enumerate(found):
        shape = tensor._array.shape
        for d in range(-1, -1 - len(shape), -1):
            if common[d] == 1:
                common[d] = shape[d]
            elif shape[d] not in (1, common[d]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching "
                    f"argument at index {place} had {Size(shape)}; but expected shape should be "
                    f"broadcastable to {common}")
    check_devices(found)


def check_devices(tensors: Any) -> None:
    """Are these on one device? Single numbers may be on the CPU."""
    found = [t for t in tensors if type(t) in tensor_types]
    devices.check_same([t for t in found if t._array.ndim or t._device is not devices.cpu])


def on_meta(op: Any, canonical: tuple[Any, ...]) -> Any:
    """Run `op` for the geometry and the types of its results."""
    if op.kind == "pointwise":
        check_together(op.inputs(canonical))
    elif op.kind == "multilinear":
        check_devices(op.inputs(canonical))
    if op.unsized is True or (op.unsized and op.unsized(*canonical)):
        raise _data_dependent_shape(op.name)
    if op.implicit:
        return op.parts(*canonical)
    result = from_miniature(op, canonical)
    if result is None and op.parts is not None:
        result = within(grad_mode, False, op.parts, *canonical)
        first = result if op.returns is None else result[0]
        return recorded(op, canonical, op.inputs(canonical), result, first)
    if result is None:
        try:
            result = op.direct(*canonical)
        except NotImplementedError as error:
            if op.kind != "pointwise" or str(error)[0] != '"':
                raise                           # else no kernel is needed here
            return _without_kernel(op, canonical)
        seen = canonical[0] if op.view or op.shares else None
        for each in (result,) if op.returns is None else result:
            emptied(each)
            if seen is not None and (seen._conjugated or seen._negated):
                each._conjugated, each._negated = seen._conjugated, seen._negated
    return result


NO_META_KERNEL = (
    "attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
    "registered. You may have run into this message while using an operator with PT2 compilation "
    "APIs (torch.compile/torch.export); in order to use this operator with those APIs you'll need "
    "to add a fake impl. Please see the following for next steps:  "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html")


class NoNonzero(NotImplementedError):
    """There is no `nonzero` on meta, which other ops call."""


NoNonzero.__name__ = NoNonzero.__qualname__ = "NotImplementedError"


def _data_dependent_shape(name: str) -> NotImplementedError:
    """What is said where the shape of a result depends on values."""
    if name in ("nonzero", "index", "argwhere"):
        return NoNonzero(
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a "
            "correct data-independent implementation does not exist. This implementation returns a "
            "fake value, assuming all elements of the tensor are non-zero. To enable this "
            "registration, please set 'torch.fx.experimental._config."
            "meta_nonzero_assume_all_nonzero' to True.")
    return NotImplementedError(f"aten::{name}: {NO_META_KERNEL}")


def _without_kernel(op: Any, canonical: tuple[Any, ...]) -> Tensor:
    """The result of a pointwise op of a type that it has no kernel for."""
    shape = broadcast_shapes(*[t._array.shape for t in op.inputs(canonical)
                               if type(t) in tensor_types])
    result = alias(meta_array(shape, type_of_result(op, canonical).numpy), MetaTensor)
    return recorded(op, canonical, op.inputs(canonical), result, result)


# ---- results of which the declaration says the shape: nothing of that size is computed -----------

def from_miniature(op: Any, canonical: tuple[Any, ...]) -> Any:
    """The results of `op`: of the shapes that its declaration says, otherwise as those of a call on
    arrays of two elements a dimension. None if there is no saying."""
    if op.inplace or op.view or op.shares:
        return None
    inputs = op.inputs(canonical)
    if callable(op.shape):              # sizes among the arguments: they don't go with a miniature
        shape, first = op.shape(*canonical), inputs[0]._array
        result = alias(enlarged(miniature(first), shape) if first.ndim == len(shape)
                       else meta_array(shape, first.dtype), MetaTensor)
        return recorded(op, canonical, inputs, result, result)
    small = [wrap(miniature(t._array)) if type(t) in tensor_types else t for t in inputs]
    try:
        shapes = declared_shapes(op, canonical, inputs)
        if shapes is None:
            return None
        made = op.direct(*op.with_inputs(canonical, small))
    except (RuntimeError, ValueError, LookupError):
        return None                     # the call itself has the error, in its own numbers
    several = op.returns is not None
    results = [alias(enlarged(t._array, shape), MetaTensor)
               for t, shape in zip(made if several else (made,), shapes)]
    result = results[0] if not several else \
        op.returns(results) if op.returns in (tuple, list) else tuple.__new__(op.returns, results)
    return recorded(op, canonical, inputs, result, results[0])


def recorded(op: Any, canonical: tuple[Any, ...], inputs: Any, result: Any, first: Tensor) -> Any:
    """The result of a call, with its node if it has one."""
    if op.is_differentiable and grad_enabled():
        edges = edges_of(inputs)
        if edges is not None and (op.returns is not None or first._array.dtype in FLOATING):
            record(op, canonical, edges, result)
            if first._edge is not None:
                saves_on_meta(first._edge.node)
    return result


def saves_on_meta(node: Any) -> None:
    """Let `node` make the results that it has saved on meta again."""
    node.result_state = [(MetaTensor, {})] * node.outputs


def declared_shapes(op: Any, canonical: tuple[Any, ...], inputs: Any) -> Any:
    """The shapes of the results of a call, as far as the declaration says them."""
    shapes = [t._array.shape for t in inputs if type(t) in tensor_types]
    if op.kind == "pointwise":
        return [broadcast_shapes(*shapes)]
    if op.core:
        return core_shapes(op.core, shapes)
    if op.shape == "self":
        return repeat(shapes[0])
    if "keepdim" in op.params and "dim" in op.dims:
        given = dict(zip(op.params, canonical[len(op.tensors):]))
        return repeat(reduced_shape(shapes[0], given["dim"], given["keepdim"]))
    return None


def core_shapes(core: str, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The shapes that a signature like "(n,k),(k,m)->(n,m)" gives; ValueError if it does not fit,
    KeyError if it has a size that the inputs have not."""
    given, results = core.split("->")
    sizes: dict[str, int] = {}
    batches = []
    for letters, shape in zip([_letters(c) for c in given.split("),(")], shapes):
        n = len(shape) - len(letters)
        if n < 0:
            raise ValueError(f"{shape} has no ({', '.join(letters)})")
        batches.append(shape[:n])
        for letter, size in zip(letters, shape[n:]):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(f"{letter} is {size} and {sizes[letter]}")
    batch = broadcast_shapes(*batches)
    return [(*batch, *[sizes[letter] for letter in _letters(c)]) for c in results.split("),(")]


def _letters(core: str) -> list[str]:
    return [letter for letter in core.strip("()").split(",") if letter]


def reduced_shape(shape: tuple[int, ...], dim: Any, keepdim: bool) -> tuple[int, ...]:
    """`shape` after a reduction over `dim` (all dimensions if None or empty)."""
    gone = range(len(shape)) if dim is None or dim == () else \
        (dim,) if isinstance(dim, int) else dim
    return tuple([1 if d in gone else n for d, n in enumerate(shape) if keepdim or d not in gone])


def miniature(array: np.ndarray) -> np.ndarray:
    """Ones in the shape of `array` with at most two a dimension, in the same order in memory."""
    shape = [min(n, 2) for n in array.shape]
    if array.flags.c_contiguous:
        return np.ones(shape, array.dtype)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    own = [shape[d] if array.strides[d] else 1 for d in order]
    small = np.ones(own, array.dtype).transpose(np.argsort(order))
    return np.broadcast_to(small, shape)


def enlarged(small: np.ndarray, shape: tuple[int, ...], array_type: Any = None) -> np.ndarray:
    """A hollow array of that shape (and type), in the order in memory of `small`."""
    array_type = array_type or small.dtype
    strides, step = [0] * small.ndim, array_type.itemsize
    for d in sorted(range(small.ndim), key=lambda d: (small.strides[d], -d)):
        strides[d] = step
        step *= shape[d]
    return meta_array(shape, array_type, None if 0 in shape else tuple(strides))


def has_meta(canonical: tuple[Any, ...]) -> bool:
    """Is any tensor of a call on `meta`?"""
    for arg in canonical:
        if type(arg) in tensor_types:
            if arg._device is not devices.cpu:
                return True
        elif type(arg) in (tuple, list) and has_meta(tuple(arg)):
            return True
    return False


