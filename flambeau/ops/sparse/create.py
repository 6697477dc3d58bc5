"""Making sparse tensors from their parts, and from products.

Indices are checked where `check_invariants` (or the switch in `flambeau.sparse`) says so.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau._support.devices.backends import could_not_run
from flambeau.core import devices, type_info
from flambeau.core.dtypes import as_numpy_dtype, from_numpy_dtype
from flambeau.core.op import public
from flambeau.core.promotion import convert
from flambeau.core.shapes import size_of
from flambeau.core.tensor import Tensor, as_leaf, wrap
from flambeau.dispatch.backend_errors import without_kernel
from flambeau.dispatch.members import member
from flambeau.ops.factory.from_data import array_of
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.calls import replace
from flambeau.ops.sparse.compressed import BLOCKED, BY_ROW, COO, TITLES
from flambeau.ops.sparse.tensors import Invariants, SparseTensor, empty, make_sparse, on_meta
from flambeau.ops.sparse.values import expect_coo, stored_values, with_values
from flambeau.ops.view.conversion import cast

# ---- making them --------------------------------------------------------------------------------

def _value_tensor(data: Any, dtype: Any) -> Tensor:
    target = as_numpy_dtype(dtype)
    if isinstance(data, Tensor):
        return data if target is None or target == data._array.dtype else cast(data, target)
    return wrap(array_of(data, dtype))


def _index_array(indices: Any) -> np.ndarray:
    """Indices as an array: a tensor's own, so that both see what is written to either."""
    return indices._array if isinstance(indices, Tensor) else array_of(indices)


def _wants_meta(device: Any, *parts: Any) -> bool:
    """Is a tensor to be made on device meta, where its parts are?"""
    return devices.checked(device) is devices.meta or (device is None and any(
        isinstance(part, Tensor) and part._device is devices.meta for part in parts))


def _off_meta(part: Any) -> Any:
    """A part as one of ordinary memory, whose values nobody looks at."""
    return wrap(part._array) if isinstance(part, Tensor) else part


def _finish(values: Tensor, pattern: SparseTensor, requires_grad: bool) -> SparseTensor:
    result = with_values(values, pattern)
    if requires_grad:
        if values._array.dtype.kind in "bui":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require "
                               "gradients")
        result.requires_grad = True
    return result


_OPTIONS = ("bool pin_memory=False, bool requires_grad=False, bool check_invariants=None")
_PLACED = f"*, ScalarType dtype=None, Device? device=None, {_OPTIONS}"


@member(f"sparse_coo_tensor(object indices, object values, {_PLACED}, bool is_coalesced=None) -> "
        "Tensor", "sparse_coo_tensor(object indices, object values, int[] size, "
        f"{_PLACED}, bool is_coalesced=None) -> Tensor", "sparse_coo_tensor(int[] size, *, "
        "ScalarType dtype=None, Device? device=None, bool requires_grad=False, "
        "bool check_invariants=None) -> Tensor", method=False)
def sparse_coo_tensor(indices: Any, values: Any, dtype: Any, device: Any, pin_memory: bool,
                      requires_grad: bool, check_invariants: bool | None,
                      is_coalesced: bool | None, size: Any) -> Tensor:
    """A sparse tensor of coordinates, (sparse dimensions, entries), and values, (entries, *dense).

    Values of one place add up. Without `size` it is the smallest that holds the indices. Gradients
    flow to `values`.

    >>> import flambeau
    >>> flambeau.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if _wants_meta(device, indices, values):
        return on_meta(sparse_coo_tensor.op.direct(
            _off_meta(indices), _off_meta(values), dtype, None, pin_memory, requires_grad, False,
            is_coalesced, size))
    if values is None:
        Invariants.hold(check_invariants)
        shape = tuple(size)
        pattern = make_sparse(COO, (np.zeros((len(shape), 0), np.int64),),
                              np.zeros(0, as_numpy_dtype(dtype) or array_of(0.0).dtype), shape)
        return _finish(wrap(pattern._data), pattern, requires_grad)
    where, entry_values = _index_array(indices), _value_tensor(values, dtype)
    where = convert(where, np.dtype(np.int64))
    if where.ndim != 2 and size is None:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    if where.ndim == 1:
        where = where[:, None] if where.size else where.reshape(0, 0) if size is not None \
            and not len(size) else where[None] if not where.size else where[:, None]
    data = entry_values._array
    if not where.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if data.ndim == 0:
        data, entry_values = data[None], entry_values.expand(1)
    sparse = len(where)
    shape = (*_smallest_size(where), *data.shape[1:]) if size is None else tuple(size_of((size,)))
    forms.check_coordinate_parts(where, data, shape)
    if Invariants.hold(check_invariants):
        forms.check_coordinates(where, data, shape[:sparse], is_coalesced)
    pattern = make_sparse(COO, (where,), data, shape, bool(is_coalesced))
    if is_coalesced is False:
        pattern._coalesced = False
    return _finish(entry_values, pattern, requires_grad)


def _smallest_size(where: np.ndarray) -> list[int]:
    for dim, row in enumerate(where):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {dim}")
    return [int(row.max()) + 1 if row.size else 0 for row in where]


def _of_parts(name: str, outer: str, inner: str) -> list[str]:
    """The schemas of a function that takes these parts."""
    return [f"{name}(object {outer}, object {inner}, object values, {size}*, ScalarType dtype=None,"
            f" Layout? layout=None, Device? device=None, {_OPTIONS}) -> Tensor"
            for size in ("int[] size, ", "")]


@member(*_of_parts("sparse_compressed_tensor", "compressed_indices", "plain_indices"),
        method=False)
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any,
                             dtype: Any, layout: Any, device: Any, pin_memory: bool,
                             requires_grad: bool, check_invariants: bool | None) -> Tensor:
    """A sparse tensor in the compressed layout `layout`: csr, csc, bsr or bsc.

    `compressed_indices` (*batch, rows + 1) says where the entries of a row (a column, in csc and
    bsc) begin, `plain_indices` (*batch, entries) the columns (rows); `values` has the shape
    (*batch, entries, *blocksize, *dense).

    >>> import flambeau
    >>> flambeau.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0],
    ...                                   layout=flambeau.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if _wants_meta(device, compressed_indices, values):
        return on_meta(sparse_compressed_tensor.op.direct(
            _off_meta(compressed_indices), _off_meta(plain_indices), _off_meta(values), size,
            dtype, layout, None, pin_memory, requires_grad, False))
    if layout not in forms.COMPRESSED:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but "
                           f"got {'none' if layout is None else TITLES.get(layout, layout)}")
    outer, inner = _index_array(compressed_indices), _index_array(plain_indices)
    entry_values = _value_tensor(values, dtype)
    data = entry_values._array
    shape = _compressed_size(outer, inner, data, layout) if size is None \
        else tuple(size_of((size,)))
    if Invariants.hold(check_invariants):
        forms.check_compressed(outer, inner, data, shape, layout)
    return _finish(entry_values, make_sparse(layout, (outer, inner), data, shape), requires_grad)


def _compressed_size(outer: np.ndarray, inner: np.ndarray, data: np.ndarray,
                     layout: Any) -> tuple[int, ...]:
    if inner.dtype.kind not in "iu":
        raise NotImplementedError('"estimate_sparse_compressed_tensor_size" not implemented for '
                                  f"'{forms.type_name(from_numpy_dtype(inner.dtype))}'")
    batch = outer.ndim - 1
    blocked = layout in BLOCKED
    height, width = data.shape[batch + 1:batch + 3] if blocked else (1, 1)
    lines, across = outer.shape[-1] - 1, int(inner.max()) + 1 if inner.size else 0
    rows, cols = (lines, across) if layout in BY_ROW else (across, lines)
    return (*outer.shape[:-1], rows * height, cols * width,
            *data.shape[batch + 1 + 2 * blocked:])


def _compressed(name: str, fixed: Any, outer: str, inner: str) -> Any:
    def body(compressed_indices: Any, plain_indices: Any, values: Any, size: Any, dtype: Any,
             layout: Any, device: Any, pin_memory: bool, requires_grad: bool,
             check_invariants: bool | None) -> Tensor:
        if layout is not None and layout is not fixed:
            title = "Strided" if layout is type_info.strided else TITLES.get(layout, "Mkldnn")
            raise RuntimeError(f"{name[:-7].replace('_', ' ')} layout must be {TITLES[fixed]} but "
                               f"got {title}")
        more = {} if size is None else {"size": size}
        return sparse_compressed_tensor(
            compressed_indices, plain_indices, values, **more, dtype=dtype, layout=fixed,
            device=device, requires_grad=requires_grad, check_invariants=check_invariants)
    return member(*_of_parts(name, outer, inner), body=body, method=False,
                  doc=f"A sparse tensor in the layout `{fixed}`, of `{outer}`, `{inner}` and "
                      "`values`: see `sparse_compressed_tensor`.")


sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor = (
    _compressed(f"sparse_{kind}_tensor", fixed, *forms.names_of(fixed))
    for kind, fixed in (("csr", forms.CSR), ("csc", forms.CSC), ("bsr", forms.BSR),
                        ("bsc", forms.BSC)))


def without_entries(name: str, shape: tuple[int, ...], dtype: np.dtype, layout: Any,
                    requires_grad: bool, device: Any = devices.cpu) -> Tensor:
    """`zeros` and `empty` with a layout that is not strided."""
    if layout is type_info.mkldnn:
        from flambeau.ops.quantized.mkldnn import made  # which builds on this package
        return made(name, shape, dtype, requires_grad)
    if name == "empty_like":
        raise without_kernel("empty_strided", f"{TITLES[layout]}CPU")
    if name.removeprefix("new_") not in ("zeros", "empty", "zeros_like"):
        name = "full" if name == "ones" else name
        raise RuntimeError(f"{name}(...) is not implemented for sparse layout")
    result = empty(shape, dtype, layout)
    if device is not devices.cpu:
        result._device = device
    return as_leaf(result) if requires_grad else result


# ---- products of other kinds --------------------------------------------------------------------

@member("hspmm(Tensor mat1, Tensor mat2, *, Tensor? out=None) -> Tensor", method=False)
def hspmm(mat1: SparseTensor, mat2: Tensor, out: Tensor | None) -> Tensor:
    """The product of a sparse and a dense matrix, sparse in its rows and dense in its columns.

    >>> import flambeau
    >>> flambeau.hspmm(flambeau.eye(2).to_sparse(), flambeau.ones(2, 1)).dense_dim()
    1
    """
    if mat1.layout is flambeau.strided:
        raise could_not_run("hspmm" if out is None else "hspmm.out", "CPU")
    expect_coo(mat1, "hspmm")
    rows = np.unique(mat1._where[0][0])
    taken = flambeau.mm(mat1, mat2).index_select(0, wrap(rows))
    product = with_values(taken, make_sparse(COO, (rows[None],), taken._array, (
        mat1._array.shape[0], mat2._array.shape[1]), True))
    return product if out is None else replace(out, product)


@member("smm(Tensor self, Tensor mat2) -> Tensor")
def smm(input: SparseTensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one."""
    if input.layout is not COO:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    if mat._array.ndim != 2:
        raise RuntimeError(f"sspaddmm: Argument #3: matrices expected, got {mat._array.ndim}D "
                           "tensor")
    product = hspmm(input, mat)
    rows, width = product._where[0][0], mat._array.shape[1]
    where = np.stack([np.repeat(rows, width), np.tile(np.arange(width), len(rows))])
    values = stored_values(product).reshape(-1)
    result = with_values(values, make_sparse(COO, (where,), values._array, product._array.shape))
    result._coalesced = False
    return result


def _sspaddmm(input: SparseTensor, mat1: SparseTensor, mat2: Tensor, beta: Any, alpha: Any,
              out: Tensor | None = None) -> Tensor:
    _check_sspaddmm(input, mat1, mat2)
    scaled = input if beta == 1 else input * beta
    product = smm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    values = flambeau.cat([stored_values(scaled), stored_values(product)])
    where = np.concatenate([scaled._where[0], product._where[0]], 1)
    total = with_values(values, make_sparse(COO, (where,), values._array, input._array.shape))
    total._coalesced = False
    return total if out is None else replace(out, total)


def _check_sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    if input.layout is not COO:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    for name, tensor, layout in (("mat1", mat1, COO), ("mat2", mat2, flambeau.strided)):
        if tensor.layout is not layout:
            raise RuntimeError(f"sspaddmm: expected '{name}' to have {_LAYOUT[layout]} layout, "
                               f"got '{name}' with layout {TITLES.get(tensor.layout, 'Strided')}")
    (rows, inner), (given, columns) = mat1.shape, mat2.shape
    if given != inner:
        raise RuntimeError(f"sspaddmm: Argument #3: Expected dim 0 size {inner}, got {given}")
    for dim, wanted in enumerate((rows, columns)):
        if input.shape[dim] != wanted:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {dim} size {wanted}, got "
                               f"{input.shape[dim]}")


_LAYOUT = {COO: "sparse", flambeau.strided: "strided"}


_PRODUCT = "Tensor self, Tensor mat1, Tensor mat2"
_FACTORS = "Scalar beta=1, Scalar alpha=1"
_HOW: dict[str, Any] = {
    "body": _sspaddmm,
    "deprecated": ("sspaddmm(Scalar beta, Tensor self, Scalar alpha, Tensor mat1, Tensor mat2) -> "
                   "Tensor", f"sspaddmm(Scalar beta, {_PRODUCT}) -> Tensor"),
    "doc": "beta · input + alpha · mat1 @ mat2 for sparse `input` and `mat1`, as a sparse matrix."}
sspaddmm = member(f"sspaddmm({_PRODUCT}, *, {_FACTORS}, Tensor? out=None) -> Tensor", method=False,
                  **_HOW)
member(f"sspaddmm({_PRODUCT}, *, {_FACTORS}) -> Tensor", function=False, **_HOW)
for _name in ("dsmm", "spmm"):
    public["torch"][_name] = flambeau.mm
public["torch"]["saddmm"] = sspaddmm
public["torch"]["hsmm"] = hspmm


__all__ = ["hspmm", "smm", "sparse_compressed_tensor", "sparse_coo_tensor", "sspaddmm"]
