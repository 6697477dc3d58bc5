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
from flambeau._support.symbolic_names import SymInt
from flambeau.utils.weak import WeakIdKeyDictionary

_ids = itertools.count(1)


class NestedInt(SymInt):
    """The length that varies: it stands in sizes and equals itself alone."""

    def __init__(self, coeff: int = 1):
        self._coeff, self._id = coeff, next(_ids)

    def __repr__(self) -> str:
        return f"j{self._id}" if self._coeff == 1 else f"{self._coeff}*j{self._id}"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, NestedInt) and self._id == other._id
                and self._coeff == other._coeff)

    def __hash__(self) -> int:
        return hash(("j", self._id, self._coeff))


# The varying length of each tensor of offsets or lengths: tensors that share one agree in it.
_tensor_symint_registry = WeakIdKeyDictionary()


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> NestedInt:
    """The length that a tensor of offsets or lengths stands for."""
    found = _tensor_symint_registry.get(tensor)
    if found is None:
        found = _tensor_symint_registry[tensor] = NestedInt()
    if coeff == 1:
        return found
    multiple = copy.copy(found)
    multiple._coeff = coeff
    return multiple


class NestedTensor(Tensor):
    """Parts of different sizes as one tensor; `nested_tensor` and its kind make them. What public
    calls do with it is added by `rules`."""

    _elements: Tensor
    _shapes: list[tuple[int, ...]]
    _ragged: int | None                 # the dimension that varies; None for layout `strided`
    _length: Any = None                 # the `NestedInt` of that dimension
    _starts: Tensor | None = None       # offsets, and lengths where they leave gaps
    _lengths: Tensor | None = None
    is_nested = property(lambda self: True)

    @staticmethod
    def __new__(cls, values: Tensor, offsets: Tensor, *, lengths: Tensor | None = None,
                _ragged_idx: int = 1, _metadata_cache: Any = None, **options: Any) -> NestedTensor:
        """A tensor of layout `jagged`, whose parts begin at `offsets` in `values`."""
        if offsets is None:
            raise AssertionError("offsets must be given")
        if isinstance(values, NestedTensor):
            raise AssertionError("values cannot be a nested tensor")
        found = offsets.diff().tolist() if lengths is None else lengths.tolist()
        axis = _ragged_idx - 1
        shapes = [(*values.shape[:axis], size, *values.shape[axis + 1:]) for size in found]
        return make(values, shapes, _ragged_idx, offsets, lengths)

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
        ndim = self.dim()
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, "
                             f"{ndim - 1}], but got {dim})")
        dim %= ndim
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
        step = copy.copy(self._length)
        step._coeff *= inner[self._ragged - 1]
        strides = (step, *inner)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._lengths is None and self._ragged in (None, 1)

    def values(self) -> Tensor:
        """The elements of all parts in one tensor."""
        return self._elements

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

    _values = property(values)
    _offsets = property(offsets)

    @property
    def _ragged_idx(self) -> int | None:
        return self._ragged

    def _seqlens(self) -> list[int]:
        assert self._ragged is not None, "a nested tensor of layout strided has no ragged dimension"
        return [shape[self._ragged - 1] for shape in self._shapes]

    def _get_max_seqlen(self) -> int:
        return max(self._seqlens(), default=0)

    def _get_min_seqlen(self) -> int:
        return min(self._seqlens(), default=0)

    _max_seqlen = _maybe_max_seqlen = property(_get_max_seqlen)
    _min_seqlen = _maybe_min_seqlen = property(_get_min_seqlen)

    @property
    def _metadata_cache(self) -> dict[str, Tensor]:
        return {"min_seqlen": _store_val_in_tensor(self._min_seqlen),
                "max_seqlen": _store_val_in_tensor(self._max_seqlen)}

    def _nested_tensor_size(self) -> Tensor:
        return flambeau.tensor(self._shapes)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts; views of the elements."""
        if dim not in (0, -self.dim()):
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        values, parts, at = self._elements, [], 0
        if self._ragged is None:
            for shape in self._shapes:
                size = math.prod(shape)
                parts.append(values.narrow(0, at, size).reshape(shape))
                at += size
            return tuple(parts)
        axis = self._ragged - 1
        starts = self._starts.tolist() if self._starts is not None else []
        return tuple([values.narrow(axis, start, shape[axis])
                      for start, shape in zip(starts, self._shapes)])

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            return self.unbind()[index]
        if isinstance(index, tuple) and index and isinstance(index[0], int):
            return self.unbind()[index[0]][index[1:]]
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            place = index.index(Ellipsis)
            named = sum(i is not None for i in index) - 1
            index = (*index[:place], *[slice(None)] * (self.dim() - named), *index[place + 1:])
        whole, inner = index[:self._ragged_end()], index[self._ragged_end():]
        if all(i == slice(None) for i in whole) and self._ragged is not None:
            places = (slice(None),) * (len(whole) - 1)
            return self._with_parts([part[(*places, *inner)] for part in self.unbind()])
        raise NotImplementedError("index of a nested tensor that is no int")

    def _ragged_end(self) -> int:
        """How many dimensions there are up to the one that varies."""
        return 1 if self._ragged is None else self._ragged + 1

    def _with_parts(self, parts: list[Tensor]) -> NestedTensor:
        """Parts that have the varying dimension of this tensor."""
        return join(parts, self.layout, self._length)

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

    def with_values(self, values: Tensor) -> NestedTensor:
        """Other elements in the parts of this tensor."""
        return make(values, self._shapes, self._ragged, self._starts, self._lengths, self._length)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """An ordinary tensor as large as the largest part, filled up with `padding`."""
        if not self._shapes:
            raise RuntimeError("to_padded_tensor: at least one constituent tensor should have "
                               "non-zero numel")
        largest = [max(sizes) for sizes in zip(*self._shapes)]
        if output_size is not None:
            rows, *wanted = output_size
            if rows < len(self._shapes) or len(wanted) != len(largest) \
                    or any(w < n for w, n in zip(wanted, largest)):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. "
                                   "Truncation is not supported.")
            largest = wanted
        pad = flambeau.nn.functional.pad
        padded = []
        for part in self.unbind():
            missing = [(0, n - m) for n, m in zip(largest, part.shape)]
            padded.append(pad(part, [n for pair in reversed(missing) for n in pair],
                              value=padding))
        more = 0 if output_size is None else output_size[0] - len(padded)
        result = flambeau.stack(padded)
        return pad(result, [0, 0] * len(largest) + [0, more], value=padding) if more else result

    def tolist(self) -> Any:
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to "
                               "Scalar")
        return self._elements.item()

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        return self.with_values(copy.deepcopy(self._elements, memo))

    def __reduce_ex__(self, protocol: int) -> Any:
        return make, (self._elements, self._shapes, self._ragged, self._starts, self._lengths)

    def __repr__(self) -> str:
        node = self.grad_fn
        tail = f"grad_fn=<{type(node).__name__}>" if node is not None else \
            "requires_grad=True" if self.requires_grad else ""
        if self._ragged is not None:
            tail = f", {tail}" if tail else ""
            sizes = ", ".join(map(str, self.shape))
            return (f"NestedTensor(size=({sizes}), offsets={self._starts}{tail}, "
                    f"contiguous={self.is_contiguous()})")
        leaf = ", requires_grad=True" if self.requires_grad else ""
        parts = [repr(p.detach())[:-1] + f"{leaf})" for p in self.unbind()]
        text = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
        return f"nested_tensor([\n{text}\n]{', ' + tail if tail else ''})"


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
    stand_in = flambeau.zeros((), dtype=values.dtype).expand(len(shapes), *largest)
    result: Any = stand_in.as_subclass(NestedTensor)
    result._elements, result._shapes, result._ragged = values, shapes, ragged
    if ragged is not None:
        result._starts, result._lengths = starts, lengths
        if length is None:
            length = get_tensor_symint(starts if lengths is None else lengths)
        result._length = length
    return result


def join(parts: Any, layout: Any, length: Any = None) -> NestedTensor:
    """A nested tensor of parts, whose elements are copied, with history."""
    parts = list(parts)
    shapes = [tuple(p.shape) for p in parts]
    if layout is not flambeau.jagged:
        flat = [p.reshape(-1) for p in parts]
        return make(flambeau.cat(flat) if flat else flambeau.zeros(0), shapes, None)
    ragged = ragged_dim(shapes)
    sizes = [shape[ragged - 1] for shape in shapes]
    starts = flambeau.tensor([0, *itertools.accumulate(sizes)])
    return make(flambeau.cat(parts, ragged - 1), shapes, ragged, starts, None, length)


def ragged_dim(shapes: Any) -> int:
    """The one dimension of parts of these shapes that varies, counting that of the parts."""
    varying = [i for i, sizes in enumerate(zip(*shapes)) if len({*sizes}) > 1]
    if len(varying) > 1 or not shapes or not shapes[0]:
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged "
                           "layout. Note that the jagged layout only allows for a single ragged "
                           "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim.")
    return varying[0] + 1 if varying else 1


__all__ = ["NestedInt", "NestedTensor", "get_tensor_symint", "join", "make"]
