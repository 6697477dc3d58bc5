"""Nested tensors: several tensors whose sizes differ, as one.

A `NestedTensor` keeps the elements of all its parts in one tensor, `_elements`, with its history:
for layout `jagged` along the one dimension whose length varies, for `strided` one after the other.
Elementwise ops run on that; others run on the parts, and join what they give. Gradients flow
through `_elements`.
"""
from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._serialization.checkpoint_names import (
    attributes_of,
)
from flambeau._serialization.checkpoint_names import rebuild_from_type as _rebuild_from_type_v2
from flambeau._serialization.checkpoint_names import (
    rebuild_nested_tensor as _rebuild_nested_tensor,
)
from flambeau._support.c_functions import type_name
from flambeau.core.autograd.graph import next_order
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import SeenAsTensor
from flambeau.dispatch.backend_errors import without_kernel
from flambeau.nested._internal.nested_int import get_tensor_symint
from flambeau.ops.node_names import rename


def _view_by(values: Tensor, node: str) -> Tensor:
    """A view of `values` that is recorded as `node`."""
    since = next_order()
    view = flambeau.alias(values)
    rename(view, node, since)
    return view


def named(values: Tensor, node: str) -> Tensor:
    """`values`, whose history says by which op on the whole they came about."""
    return _view_by(values, node) if node and values.grad_fn is not None else values


OWN = "BackwardAutogradNestedTensor"        # the derivative is one for nested tensors only


def _whole(dim: Any, name: str) -> int:
    if not hasattr(type(dim), "__index__") or (isinstance(dim, Tensor) and dim.numel() != 1):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type_name(dim)}")
    return dim


class NestedTensor(Tensor):
    """Parts of different sizes as one tensor; `nested_tensor` and its kind make them. What public
    calls do with it is added by `rules`."""

    _elements: Tensor
    _shapes: list[tuple[int, ...]]
    _ragged: int | None                 # the dimension that varies; None for layout `strided`
    _length: Any = None                 # the `NestedInt` of that dimension
    _starts: Tensor | None = None       # offsets, and lengths where they leave gaps
    _lengths: Tensor | None = None
    _limits: tuple[int | None, ...] = (None, None)          # lengths of which the user is sure
    _dense = True                       # of layout `strided`: do the parts follow each other?
    is_nested = property(lambda self: True)

    @staticmethod
    def __new__(cls, values: Tensor, offsets: Tensor, *, lengths: Tensor | None = None,
                _ragged_idx: int = 1, _metadata_cache: Any = None, **options: Any) -> NestedTensor:
        """A tensor of layout `jagged`, whose parts begin at `offsets` in `values`."""
        if offsets is None:
            raise AssertionError("offsets must be given")
        if isinstance(values, NestedTensor):
            raise AssertionError("values cannot be a nested tensor")
        made = make(values, shapes_within(values, offsets, lengths, _ragged_idx), _ragged_idx,
                    offsets, lengths)
        cached = _metadata_cache or {}
        made._limits = tuple([_load_val_from_tensor(cached[k]) if k in cached else None
                              for k in ("min_seqlen", "max_seqlen")])
        return made

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    # ---- what it holds --------------------------------------------------------------------------

    @property
    def layout(self) -> Any:
        return flambeau.strided if self._ragged is None else flambeau.jagged

    @property
    def shape(self) -> Any:
        if self._ragged is None:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. "
                               "Please file an issue.")
        sizes: list[Any] = [len(self._shapes), *self._elements.shape]
        sizes[self._ragged] = self._length
        return tuple.__new__(flambeau.Size, sizes)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        dim = wrap_dim(_whole(dim, "size"), self.dim())
        if self._ragged is not None:
            return self.shape[dim]
        found = {shape[dim - 1] for shape in self._shapes} if dim else {len(self._shapes)}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def dim(self) -> int:
        return len(self._shapes[0]) + 1 if self._shapes else 1

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        return sum(math.prod(shape) for shape in self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def stride(self, dim: int | None = None) -> Any:
        """The steps in the elements, for layout `jagged`: those between parts vary."""
        if self._ragged is None:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. "
                               "Please file an issue.")
        inner = self._elements.stride()
        strides = (self._length * inner[self._ragged - 1], *inner)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if self._ragged is None:
            return self._dense
        return self._lengths is None and self._elements.is_contiguous()

    def values(self) -> Tensor:
        """The elements of all parts in one tensor."""
        node = "NestedGetValuesBackward0" if self._ragged is not None else f"Values{OWN}0"
        return _view_by(self._elements, node)

    def offsets(self) -> Tensor:
        """Where the parts begin in `values()`, for layout `jagged`."""
        if self._starts is None:
            raise AttributeError("'Tensor' object has no attribute 'offsets'")
        return self._starts

    def lengths(self) -> Tensor | None:
        """The lengths of the parts where they leave gaps in `values()`, else None."""
        if self._ragged is None:
            raise AttributeError("'Tensor' object has no attribute 'lengths'")
        return self._lengths

    _size = property(lambda self: tuple(self.shape))
    _strides = property(lambda self: self.stride())
    _offsets = property(offsets)

    @property
    def _ragged_idx(self) -> int | None:
        return self._ragged

    def _seqlens(self) -> list[int]:
        assert self._ragged is not None, "a nested tensor of layout strided has no ragged dimension"
        return [shape[self._ragged - 1] for shape in self._shapes]

    def _get_max_seqlen(self) -> int:
        known = self._limits[1]
        return max(self._seqlens(), default=0) if known is None else known

    def _get_min_seqlen(self) -> int:
        known = self._limits[0]
        return min(self._seqlens(), default=0) if known is None else known

    _max_seqlen = _maybe_max_seqlen = property(_get_max_seqlen)
    _min_seqlen = _maybe_min_seqlen = property(_get_min_seqlen)

    @property
    def _metadata_cache(self) -> dict[str, Tensor]:
        return {"min_seqlen": _store_val_in_tensor(self._min_seqlen),
                "max_seqlen": _store_val_in_tensor(self._max_seqlen)}

    def _nested_tensor_size(self) -> Tensor:
        return flambeau.tensor(self._shapes)

    def _nested_tensor_strides(self) -> Tensor:
        return flambeau.tensor([part.stride() for part in self._parts()])

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return flambeau.tensor([part.storage_offset() for part in self._parts()])

    def _parts(self) -> list[Tensor]:
        values = self._elements
        if self._ragged is None:
            ends = itertools.accumulate([math.prod(shape) for shape in self._shapes])
            return [values.narrow(0, end - math.prod(shape), math.prod(shape)).reshape(shape)
                    for end, shape in zip(ends, self._shapes)]
        axis = self._ragged - 1
        starts = self._starts.tolist() if self._starts is not None else []
        return [values.narrow(axis, start, shape[axis])
                for start, shape in zip(starts, self._shapes)]

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts; views of the elements."""
        if _whole(dim, "unbind") not in (0, -self.dim()):
            raise RuntimeError(
                "NestedTensor can only be unbound along dimension 0 got dimension "
                f"{dim % self.dim()} instead." if self._ragged is None else
                "unbind(): only supported for NestedTensor on dim=0")
        return tuple([named(part, f"Unbind{OWN}0") for part in self._parts()])

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        result: Any = self
        dim = 0
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(item, list | Tensor) for item in items):
            if self._ragged is not None:
                raise NotImplementedError("aten.index.Tensor")
            raise without_kernel("index", "NestedTensorCPU", (flambeau.empty(0),))
        for place, item in enumerate(items):
            if item is Ellipsis:
                dim = result.dim() - sum(i is not None for i in items[place + 1:])
            elif item is None:
                result, dim = result.unsqueeze(dim), dim + 1
            elif isinstance(item, slice):
                result, dim = flambeau.ops.aten.slice(result, dim, item.start, item.stop,
                                                      item.step or 1), dim + 1
            else:
                result = result.select(dim, item)
        return result

    # ---- autograd -------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self._elements.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self._elements.is_leaf

    @property
    def grad_fn(self) -> Any:
        node = self._elements.grad_fn
        if node is not None and self._ragged is not None:
            node._nested_shape = self.shape         # shown by its metadata
        return node

    @property
    def grad(self) -> Any:
        """The gradient of the elements, in the form of this tensor."""
        found = self._elements.grad
        return None if found is None else self.with_values(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._elements.grad = None if value is None else value._elements

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """`Tensor.backward` of the elements, with a nested gradient."""
        if isinstance(gradient, NestedTensor):
            gradient = gradient._elements
        self._elements.backward(gradient, retain_graph, create_graph, inputs)

    # ---- other forms ----------------------------------------------------------------------------

    def with_values(self, values: Tensor, ragged: int | None = None) -> NestedTensor:
        """Other elements in the parts of this tensor, of which dimension `ragged` varies."""
        if self._ragged is None:
            made = make(values, self._shapes, None)
            made._dense = self._dense
            return made
        ragged = self._ragged if ragged is None else ragged
        made = make(values, shapes_within(values, self._starts, self._lengths, ragged), ragged,
                    self._starts, self._lengths, self._length)
        made._limits = self._limits
        return made

    def retain_grad(self) -> None:
        self._elements.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        def on_elements(grad: Tensor) -> Any:
            changed = hook(self.with_values(grad))
            return None if changed is None else changed._elements
        return self._elements.register_hook(on_elements)

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        names = ["_values", "_offsets", *["_lengths"] * (self._lengths is not None),
                 "_min_seqlen_tensor", "_max_seqlen_tensor"]
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    _min_seqlen_tensor = property(lambda self: self._metadata_cache["min_seqlen"])
    _max_seqlen_tensor = property(lambda self: self._metadata_cache["max_seqlen"])

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """An ordinary tensor as large as the largest part, filled up with `padding`."""
        if not self._shapes:
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have "
                               "non-zero numel")
        if self._lengths is not None:
            raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
        largest = [max(sizes) for sizes in zip(*self._shapes)]
        rows = len(self._shapes)
        if output_size is not None:
            rows, *wanted = output_size
            if self._ragged is None and (
                    rows < len(self._shapes) or len(wanted) != len(largest)
                    or any(w < n for w, n in zip(wanted, largest))):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. "
                                   "Truncation is not supported.")
            largest = wanted
        result = self._elements.new_full((rows, *largest), padding)
        for row, part in enumerate(self._parts()):
            part = part[tuple([slice(n) for n in largest])]
            result[(row, *[slice(n) for n in part.shape])] = part
        return named(result, "ToPaddedTensorBackward0")

    def tolist(self) -> Any:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got "
                           f"{type(self).__name__}")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to "
                               "Scalar")
        return self._elements.item()

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        if self._ragged is None:
            raise without_kernel("new_empty", "NestedTensorCPU")
        return self.with_values(copy.deepcopy(self._elements, memo))

    def __reduce_ex__(self, protocol: int) -> Any:
        if self._ragged is None:
            return _rebuild_nested_tensor, (
                self._elements.detach(), self._nested_tensor_size(), self._nested_tensor_strides(),
                self._nested_tensor_storage_offsets())
        return _rebuild_from_type_v2, (_rebuild_njt, type(self), ({
            "values": self._elements.detach(), "offsets": self._starts, "lengths": self._lengths,
            "_ragged_idx": self._ragged, "_metadata_cache": self._metadata_cache,
            "requires_grad": self.requires_grad},), {})

    def __setstate__(self, state: Any) -> None:
        for name, value in attributes_of(state).items():    # PyTorch's files say the parts again
            if not hasattr(self, name):
                setattr(self, name, value)

    def __repr__(self) -> str:
        node = self.grad_fn
        tail = "requires_grad=True" if self.requires_grad else ""
        if self._ragged is not None:
            tail = f"grad_fn={node}" if node is not None else tail
            tail = f", {tail}" if tail else ""
            sizes = ", ".join(map(str, self.shape))
            return (f"NestedTensor(size=({sizes}), offsets={self._starts}{tail}, "
                    f"contiguous={self.is_contiguous()})")
        if node is not None:
            tail = f"grad_fn=<{type(node).__name__}>"
        leaf = ", requires_grad=True" if self.requires_grad else ""
        parts = [repr(p.detach())[:-1] + f"{leaf})" for p in self.unbind()]
        text = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
        return f"nested_tensor([\n{text}\n]{', ' + tail if tail else ''})"


NestedTensor.__module__ = "flambeau.nested._internal.nested_tensor"
_jagged: Any = NestedTensor
_jagged._values = property(lambda self: self._elements)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> NestedTensor:
    """The tensor of a file."""
    flag = constructor_kwargs.pop("requires_grad", False)
    return NestedTensor(**constructor_kwargs).requires_grad_(flag)


_rebuild_njt.__module__ = NestedTensor.__module__       # which files name


class StridedNestedTensor(SeenAsTensor, NestedTensor):
    """A nested tensor of layout `strided`. Users see it as `Tensor`."""

    _ragged = None
    __reduce_ex__ = NestedTensor.__reduce_ex__      # which files look for in the class itself

    def _values(self) -> Tensor:
        raise without_kernel("_values", "NestedTensorCPU")


StridedNestedTensor.__module__ = "torch"
StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"


def _store_val_in_tensor(val: int) -> Tensor:
    """A number as the size of a tensor without elements."""
    return flambeau.zeros(val, 0)


def _load_val_from_tensor(t: Tensor) -> int:
    """The number that `_store_val_in_tensor` has stored."""
    return t.shape[0]


def make(values: Tensor, shapes: Any, ragged: int | None, starts: Tensor | None = None,
         lengths: Tensor | None = None, length: Any = None) -> NestedTensor:
    """A nested tensor of these elements."""
    shapes = list(map(tuple, shapes))
    largest = [max(sizes) for sizes in zip(*shapes)]    # what checks of arguments see: no elements
    stand_in = flambeau.zeros((), dtype=values.dtype, device="cpu").expand(len(shapes), *largest)
    result: Any = stand_in.as_subclass(StridedNestedTensor if ragged is None else NestedTensor)
    result._elements, result._shapes, result._ragged = values, shapes, ragged
    if values._device is not result._device:
        result._device = values._device
    if ragged is not None:
        result._starts, result._lengths = starts, lengths
        if length is None:
            length = get_tensor_symint(starts if lengths is None else lengths)
        result._length = length
    return result


def shapes_within(values: Tensor, starts: Any, lengths: Any, ragged: int) -> list[tuple[int, ...]]:
    """The shapes of parts that lie one after the other in a dimension of `values`."""
    axis, found = ragged - 1, starts.diff().tolist() if lengths is None else lengths.tolist()
    return [(*values.shape[:axis], size, *values.shape[axis + 1:]) for size in found]


def over_jagged(values: Tensor, offsets: Tensor, lengths: Tensor | None = None, ragged: int = 1,
                min_seqlen: int | None = None, max_seqlen: int | None = None) -> NestedTensor:
    """A tensor of layout `jagged` that looks at `values`."""
    seen = named(values, "NestedViewFromJaggedBackward0")
    made = make(seen, shapes_within(values, offsets, lengths, ragged), ragged, offsets, lengths)
    made._limits = (min_seqlen, max_seqlen)
    return made


def join(parts: Any, layout: Any, length: Any = None, node: str = "") -> NestedTensor:
    """A nested tensor of parts, whose elements are copied, with history: that of an op on the
    whole where `node` names it."""
    parts = list(parts)
    shapes = [tuple(p.shape) for p in parts]
    if layout is not flambeau.jagged:
        flat = [p.reshape(-1) for p in parts]
        return make(named(flambeau.cat(flat) if flat else flambeau.zeros(0), node), shapes, None)
    ragged = ragged_dim(shapes)
    sizes = [shape[ragged - 1] for shape in shapes]
    starts = flambeau.tensor([0, *itertools.accumulate(sizes)])
    return make(named(flambeau.cat(parts, ragged - 1), node), shapes, ragged, starts, None, length)


def map_parts(func: Any, size: int, dims: Any, leaves: Any) -> Any:
    """`vmap` of a function over nested tensors: what it gives of each part is a part of a result.
    """
    from flambeau.utils._pytree import tree_map
    for leaf, dim in zip(leaves, dims):
        if dim and leaf.is_nested:
            raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={dim}")
    found = [func([leaf if d is None else leaf.select(d, i) for leaf, d in zip(leaves, dims)])
             for i in range(size)]
    return tree_map(lambda *parts: join(parts, flambeau.strided), *found)


def ragged_dim(shapes: Any) -> int:
    """The one dimension of parts of these shapes that varies, counting that of the parts."""
    varying = [i for i, sizes in enumerate(zip(*shapes)) if len({*sizes}) > 1]
    if len(varying) > 1 or not shapes or not shapes[0]:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged "
                           "layout. Note that the jagged layout only allows for a single ragged "
                           "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim.")
    return varying[0] + 1 if varying else 1


__all__ = ["OWN", "NestedTensor", "StridedNestedTensor", "join", "make", "named"]
