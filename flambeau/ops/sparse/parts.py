"""What a sparse tensor can be asked: its indices and values, how many there are, and its size."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.source_locations import bump
from flambeau.core import devices
from flambeau.core.op import public
from flambeau.core.shapes import size_of
from flambeau.core.tensor import Tensor
from flambeau.dispatch.members import member
from flambeau.ops.coercion import store
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.compressed import BY_ROW, COO, TITLES
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    is_sparse,
    make_sparse,
    part_of,
    sparse_dim_of,
    unsupported,
)
from flambeau.ops.sparse.values import coalesced, expect, expect_coo, masked, stored_values
from flambeau.transforms import meta


@member("coalesce(Tensor(a) self) -> Tensor(a)", function=False)
def coalesce(self: SparseTensor) -> Tensor:
    """This tensor with each place once, in row-major order; itself if it is so."""
    expect_coo(self, "coalesce")
    return coalesced(self)


@member("is_coalesced(Tensor self) -> bool", function=False)
def is_coalesced(self: SparseTensor) -> bool:
    """Is each place here once, in row-major order?"""
    expect_coo(self, "is_coalesced")
    return self._coalesced


@member("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", function=False)
def _coalesced_(self: SparseTensor, coalesced: bool) -> Tensor:
    expect_coo(self, "_coalesced_")
    self._coalesced = bool(coalesced)
    return self


@member("sparse_dim(Tensor self) -> int", function=False, aliases=("_dimI(Tensor self) -> int",))
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions."""
    if not is_sparse(self):
        return 0
    return sparse_dim_of(self) if self._layout is COO else 2


@member("dense_dim(Tensor self) -> int", function=False, aliases=("_dimV(Tensor self) -> int",))
def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions."""
    return self._array.ndim - (sparse_dim_of(self) if is_sparse(self) else 0)


@member("_nnz(Tensor self) -> int", function=False)
def _nnz(self: Tensor) -> int:
    """The number of entries."""
    if not is_sparse(self):
        raise unsupported("_nnz", self)
    return self._data.shape[0] if self._layout is COO else self._where[1].shape[-1]


@member("_indices(Tensor(a) self) -> Tensor(a)", function=False)
def _indices(self: Tensor) -> Tensor:
    """The indices as they are, coalesced or not."""
    if not is_sparse(self) or self._layout is not COO:
        raise unsupported("_indices", self)
    return part_of(self, self._where[0])


@member("_values(Tensor(a) self) -> Tensor(a)", function=False)
def _values(self: Tensor) -> Tensor:
    """The values as they are, coalesced or not, without history."""
    if not is_sparse(self) or self._layout is not COO:
        raise unsupported("_values", self)
    return part_of(self, self._data)


@member("indices(Tensor(a) self) -> Tensor(a)", function=False)
def indices(self: SparseTensor) -> Tensor:
    """The indices of a coalesced tensor, (sparse dimensions, entries)."""
    expect_coo(self, "indices")
    if not self._coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() "
                           "first")
    return part_of(self, self._where[0])


@member("values(Tensor(a) self) -> Tensor(a)", function=False)
def values(self: SparseTensor) -> Tensor:
    """The values of a sparse tensor, which must be coalesced."""
    expect(self, "values", [*TITLES][1:], "sparse")
    if self._layout is COO and not self._coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() "
                           "first")
    result = stored_values(self)
    return result if self._device is devices.cpu else meta.to_meta(result)


def _part(name: str, layouts: Any, what: str, position: int, doc: str) -> None:
    def method(self: SparseTensor) -> Tensor:
        expect(self, name, layouts, what)
        return part_of(self, self._where[position])
    member(f"{name}(Tensor(a) self) -> Tensor(a)", body=method, doc=doc, function=False)


def _copy_of(name: str) -> None:
    def function(input: Tensor, out: Tensor | None) -> Tensor:
        part = getattr(input, name)().clone()
        return part if out is None else store(out, public["torch"]["clone"].op, part)
    member(f"{name}_copy(Tensor self, *, Tensor? out=None) -> Tensor", body=function, method=False,
           doc=f"A copy of what `Tensor.{name}` gives of a sparse tensor.")


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    _copy_of(_name)

_BY_COLUMN = (forms.CSC, forms.BSC)
for _name, _layouts, _position, _doc in (
        ("crow_indices", BY_ROW, 0, "Where the entries of each row begin, in csr and bsr."),
        ("col_indices", BY_ROW, 1, "The column of each entry, in csr and bsr."),
        ("ccol_indices", _BY_COLUMN, 0, "Where the entries of each column begin, in csc and bsc."),
        ("row_indices", _BY_COLUMN, 1, "The row of each entry, in csc and bsc.")):
    _part(_name, _layouts, f"sparse {'row' if _layouts is BY_ROW else 'column'} compressed",
          _position, _doc)


@member("sparse_mask(Tensor self, Tensor mask) -> Tensor", function=False)
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The values of this tensor at the places of the sparse tensor `mask`."""
    if not is_sparse(mask):
        raise unsupported("sparse_mask", mask)
    if mask._array.shape != self._array.shape:
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(self._array.shape)} but mask has size {list(mask._array.shape)}")
    return masked(self, mask)


@member("sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
        function=False)
def sparse_resize_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Give this tensor another size and numbers of dimensions, in place; entries stay."""
    shape = tuple(size_of((size,)))
    data, (where,) = self._data, self._where
    if len(shape) != sparse_dim + dense_dim:
        raise RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
                           f"{len(shape)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
    if len(data):
        _check_resize(self, shape, sparse_dim, dense_dim)
        grown = np.zeros((len(data), *shape[sparse_dim:]), data.dtype)
        grown.reshape(-1)[:data.size] = data.reshape(-1)    # as `resize_` does it
        return _become(self, make_sparse(COO, (where,), grown, shape, self._coalesced))
    return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)


def _check_resize(self: SparseTensor, shape: tuple[int, ...], sparse_dim: int, dense_dim: int
                  ) -> None:
    """Entries stay where they are: dimensions keep their number and do not shrink."""
    own, count = list(self._array.shape), len(self._where[0])
    said = ""
    for kind, before, after in (("sparse", count, sparse_dim),
                                ("dense", len(own) - count, dense_dim)):
        if before != after and not said:
            said = f"changing the number of {kind} dimensions (from {before} to {after})"
    for kind, old, new in (("sparse", own[:count], list(shape[:count])),
                           ("dense", own[count:], list(shape[count:]))):
        if not said and any(a < b for a, b in zip(new, old)):
            said = f"shrinking the size of {kind} dimensions (from {old} to {new})"
    if said:
        raise RuntimeError(f"{said} on a non-empty sparse tensor is not supported.\nMake an empty "
                           "one, `sparse_coo_tensor(size)`, drop the entries by "
                           "`sparse_resize_and_clear_`, or make one of other parts.")


@member("sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> "
        "Tensor(a!)", function=False)
def sparse_resize_and_clear_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int
                             ) -> Tensor:
    """Drop all entries and give this tensor another size, in place."""
    shape = tuple(size_of((size,)))
    return _become(self, make_sparse(COO, (np.zeros((sparse_dim, 0), np.int64),), np.zeros(
        (0, *shape[sparse_dim:]), self._array.dtype), shape))


def _become(self: SparseTensor, other: SparseTensor) -> SparseTensor:
    self.data = other
    bump(self)
    return self


def resize_compressed(self: SparseTensor, size: tuple[int, ...]) -> SparseTensor:
    """Another number of lines and of places in a line, in place; the entries stay."""
    if len(size) < 2:
        raise RuntimeError("torch.resize_: Only batched sparse CSR matrices are supported, but got "
                           f"size {list(size)}")
    by_row, (outer, inner), data = self._layout in forms.BY_ROW, self._where, self._data
    lines, across = (size[-2], size[-1]) if by_row else (size[-1], size[-2])
    own = self._array.shape[-1 if by_row else -2]
    if across < own:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not "
            f"supported. The original number of columns is {own} while the requested new number "
            f"of columns is {across}.")
    batch = size[:-2]
    if outer.ndim == 1 and batch:
        outer, inner, data = (np.broadcast_to(a, (*batch, *a.shape)) for a in (outer, inner, data))
    ends = np.repeat(outer[..., -1:], max(lines + 1 - outer.shape[-1], 0), -1)
    starts = np.concatenate([outer[..., :lines + 1], ends], -1)
    starts[..., -1] = outer[..., -1]            # the last line has the entries of those dropped
    return _become(self, make_sparse(self._layout, (starts, inner), data, size))


@member("resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)")
def resize_as_sparse_(input: Tensor, the_template: SparseTensor) -> Tensor:
    """Give a sparse tensor the size and the numbers of dimensions of another, in place."""
    if not is_sparse(input):
        raise unsupported("resize_as_sparse_", input)
    for tensor in (input, the_template):
        expect_coo(tensor, "resize_as_sparse_")
    return sparse_resize_(input, the_template.shape, sparse_dim_of(the_template),
                          the_template._array.ndim - sparse_dim_of(the_template))
