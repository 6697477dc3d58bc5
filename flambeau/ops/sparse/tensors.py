"""Sparse tensors: what they are, how they are made, and how calls reach their rules.

A `SparseTensor` keeps indices and values as arrays; in place of all of its elements it has an array
of its shape and type that takes the memory of one. No kernel of a dense op may see that:
`overrides` hands each public call with a sparse argument to `dispatch`, which runs the rule for
the op's name (in `sparse_math` and its like), or says that there is none.

Ops on sparse tensors are declared as all others are, with formulas of their gradients, but their
kernels take tensors. Two of them carry the rest: `with_values` makes a sparse tensor of values and
somebody else's indices, `values_of` gives the values, and each is the other's derivative.
"""
from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._support.backends import could_not_run
from flambeau._support.scopes import within
from flambeau._support.source_locations import bump, counter_of
from flambeau.core import devices, overrides, type_info
from flambeau.core.formulas import plan_saving
from flambeau.core.modes import grad_enabled, grad_mode, intercept_canonical, interceptors
from flambeau.core.op import Op, public
from flambeau.core.promotion import convert
from flambeau.core.recording import edges_of, record
from flambeau.core.shapes import Size, size_of
from flambeau.core.tensor import LEAF, Tensor, as_leaf, tensor_types, wrap
from flambeau.dispatch.function import Function
from flambeau.dispatch.members import member
from flambeau.ops.coercion import store
from flambeau.ops.inplace import check_stored, write_result
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.compressed import BLOCKED, BY_ROW, COO, TITLES
from flambeau.ops.view.conversion import clone, detach
from flambeau.ops.view.shape import movedim
from flambeau.transforms import meta

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_ZEROS = bytes(32)
_NEW = """new() received an invalid combination of arguments - got ({}), but expected one of:
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


class SparseTensor(Tensor):
    """A tensor that holds only some of its elements. Users see it as `Tensor` with a `layout`.

    `_where` is (indices,) for coordinates, else (compressed, plain) indices; `_data` the values.
    """

    _layout: Any = COO
    _where: tuple[np.ndarray, ...] = ()
    _data: np.ndarray = np.zeros(0)
    _coalesced = False

    @property
    def layout(self) -> type_info.layout:
        return self._layout

    @property
    def is_sparse(self) -> bool:
        return self._layout is COO

    @property
    def is_sparse_csr(self) -> bool:
        return self._layout is forms.CSR

    @property
    def data(self) -> SparseTensor:
        """The same entries, unknown to autograd."""
        return bare(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not is_sparse(value):
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                               "`tensor` have incompatible tensor type.")
        self._array, self._layout, self._where = value._array, value._layout, value._where
        self._data, self._coalesced = value._data, value._coalesced

    def stride(self, dim: int | None = None) -> Any:
        if self._layout is not COO:
            raise RuntimeError("Sparse CSR tensors do not have strides")
        return (0,) * self._array.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if self._layout is not COO:
            raise RuntimeError("Tensors of type SparseCsrTensorImpl do not have is_contiguous")
        return False

    def storage_offset(self) -> int:
        return 0

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self) -> Any:
        kind = "SparseTensorImpl" if self._layout is COO else "SparseCsrTensorImpl"
        raise NotImplementedError(f"Cannot access storage of {kind}")

    def numpy(self, *, force: bool = False) -> np.ndarray:
        raise TypeError(f"can't convert {TITLES[self._layout]} layout tensor to numpy. Use "
                        "Tensor.to_dense() first.")

    def tolist(self) -> Any:
        return self.data_ptr()

    def item(self) -> Any:
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to "
                               "Scalar")
        return to_dense(self.detach()).item()

    def new(self, *args: Any, device: Any = None) -> Tensor:
        """A tensor of this type and layout: without entries, or of indices, values and a size."""
        if self._layout is COO:
            if len(args) > 1 and isinstance(args[0], Tensor):
                return public["torch"]["sparse_coo_tensor"](*args, dtype=self.dtype, device=device)
            if args and isinstance(args[0], (list, tuple)) and not isinstance(args[0], Size):
                raise TypeError("SparseTensor.new(sequence) only accepts sizes.  Please use "
                                "torch.sparse_coo_tensor() or construct a strided tensor and "
                                "convert it to sparse via to_sparse.")
            if args and not isinstance(args[0], (int, Size)):
                raise TypeError(_NEW.format(type(args[0]).__name__))
        shape = tuple(size_of(args)) if args else (0,)
        return empty(shape, self._array.dtype, self._layout)

    def __getitem__(self, index: Any) -> Tensor:
        return dispatch(Tensor.__getitem__, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support "
                               "the deepcopy protocol at the moment.")
        if id(self) not in memo:
            result = rebuild(self._layout, copy.deepcopy(self._where, memo), self._data.copy(),
                             self._array.shape, self._coalesced, self._edge is LEAF)
            memo[id(self)] = result
            result._grad = copy.deepcopy(self._grad, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return rebuild, (self._layout, self._where, self._data, self._array.shape,
                         self._coalesced, self._edge is LEAF)


SparseTensor.__module__ = "torch"
SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
overrides.internal_types.add(SparseTensor)
overrides.sparse_types.add(SparseTensor)


def make(layout: Any, where: tuple[np.ndarray, ...], data: np.ndarray, shape: Any,
         coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, which are not checked."""
    tensor = object.__new__(SparseTensor)
    shape = tuple(shape)
    tensor._array = np.ndarray(shape, data.dtype, _ZEROS, 0, (0,) * len(shape))
    tensor._edge = tensor._base = tensor._counter = None
    tensor._layout, tensor._where, tensor._data = layout, where, data
    if coalesced or (layout is COO and len(data) < 2):
        tensor._coalesced = True
    return tensor


def on_meta(tensor: Any) -> Any:
    """What an op on tensors of device meta has given: without values, and on meta too."""
    if type(tensor) in (tuple, list):
        return type(tensor)(map(on_meta, tensor))
    if is_sparse(tensor):
        tensor._device = devices.meta
        return tensor
    return meta.to_meta(tensor) if type(tensor) is Tensor else tensor


def to_meta(tensor: SparseTensor) -> SparseTensor:
    """A tensor of that form without entries, on meta."""
    result = on_meta(empty_like(tensor))
    result._edge = tensor._edge
    return result


def part_of(tensor: SparseTensor, array: np.ndarray) -> Tensor:
    """Indices or values as a tensor on the same device."""
    return wrap(array) if tensor._device is devices.cpu else meta.to_meta(wrap(array))


def rebuild(layout: Any, where: Any, data: np.ndarray, shape: Any, coalesced: bool,
            requires_grad: bool) -> SparseTensor:
    result = make(layout, where, data, shape, coalesced)
    result._edge = LEAF if requires_grad else None
    return result


def like(pattern: SparseTensor, data: np.ndarray) -> SparseTensor:
    """Other values at the places of `pattern`."""
    result = make(pattern._layout, pattern._where, data, pattern._array.shape)
    if pattern._device is not devices.cpu:
        result._device = pattern._device
    result._coalesced = pattern._coalesced
    return result


def bare(tensor: SparseTensor) -> SparseTensor:
    """The same parts without history: what a node keeps to know the places by."""
    return like(tensor, tensor._data)


def is_sparse(value: Any) -> TypeIs[SparseTensor]:
    return type(value) is SparseTensor


def sparse_dim_of(tensor: SparseTensor) -> int:
    """How many dimensions the indices span."""
    if tensor._layout is COO:
        return len(tensor._where[0])
    return tensor._where[1].ndim + 1


def coordinates(tensor: SparseTensor) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values as they come."""
    if tensor._layout is COO:
        return tensor._where[0], tensor._data
    outer, inner = tensor._where
    return forms.expand(outer, inner, tensor._data, tensor._layout)


def entries(tensor: SparseTensor) -> tuple[np.ndarray, np.ndarray]:
    """Indices in row-major order and their values, each place once."""
    indices, data = coordinates(tensor)
    if tensor._coalesced or (tensor._layout is forms.CSR
                             and forms.is_coalesced(indices, tensor._array.shape)):
        return indices, data
    return forms.coalesced(indices, data, tensor._array.shape)


def blocksize_of(tensor: SparseTensor) -> tuple[int, int] | None:
    if tensor._layout not in BLOCKED:
        return None
    at = tensor._where[1].ndim
    return tensor._data.shape[at:at + 2]


# ---- declaring ops on sparse tensors ------------------------------------------------------------

def _not_batched(size: int, dims: Any, *canonical: Any) -> Any:
    raise RuntimeError("vmap: sparse tensors cannot be batched")


def sparse_op(node_name: str, tensors: str = "self", params: str = "", vjp: Any = None,
              kind: str = "general", batch: Any = _not_batched) -> Callable[..., Any]:
    """Declare an op by a kernel that takes tensors, the `tensors` first, and gives a new one."""

    def declare(kernel: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(kernel.__name__.strip("_"), kind, kernel=kernel, tensors=tuple(tensors.split()),
                params=tuple(params.split()), vjp=vjp, node_name=node_name, namespace=None,
                dims=(), shapes=(), core="", batch_rule=batch,
                doc=kernel.__doc__)
        plan_saving(op)

        def direct(*canonical: Any) -> Tensor:
            result = within(grad_mode, False, kernel, *canonical)
            edges = edges_of(op.inputs(canonical)) if grad_enabled() else None
            if edges is not None:
                record(op, canonical, edges, result)
            return result

        def call(*canonical: Any) -> Tensor:
            return intercept_canonical(op, canonical) if interceptors else direct(*canonical)
        vars(call)["op"] = op
        op.direct, op.call, op.function = direct, call, call
        return call
    return declare


# ---- values and places --------------------------------------------------------------------------

@sparse_op("ValuesBackward0", params="pattern",
           vjp=lambda grad, pattern: [with_values(grad, pattern)])
def values_of(self: SparseTensor, pattern: SparseTensor) -> Tensor:
    result = wrap(self._data)
    result._counter = counter_of(self)
    return result


def _with_values(values: Tensor, pattern: SparseTensor) -> SparseTensor:
    return like(pattern, values._array)


def _values_back(grad: Tensor, pattern: SparseTensor) -> list[Tensor]:
    return [grad_values(grad, pattern)]


_coo_with_values = sparse_op("SparseCooTensorWithDimsAndTensorsBackward0", "values", "pattern",
                             vjp=_values_back)(_with_values)
_compressed_with_values = sparse_op("SparseCompressedTensorBackward0", "values", "pattern",
                                    vjp=_values_back)(_with_values)


def with_values(values: Tensor, pattern: SparseTensor) -> SparseTensor:
    """A sparse tensor of `values` at the places of `pattern`."""
    make_one = _coo_with_values if pattern._layout is COO else _compressed_with_values
    return make_one(values, pattern)


def stored_values(tensor: SparseTensor) -> Tensor:
    """The values, with history."""
    return values_of(tensor, bare(tensor))


def grad_values(grad: Tensor, pattern: SparseTensor) -> Tensor:
    """The values of a gradient, sparse or dense, at the places of `pattern`."""
    if is_sparse(grad) and same_places(grad, pattern):
        return stored_values(grad)
    return stored_values(masked(grad, pattern))


def same_places(a: SparseTensor, b: SparseTensor) -> bool:
    """Are these entries of the same places, one each?"""
    return (a._layout is b._layout and (a._layout is not COO or (a._coalesced and b._coalesced))
            and a._data.shape == b._data.shape
            and all(x is y or np.array_equal(x, y) for x, y in zip(a._where, b._where)))


def _mask_back(grad: Tensor, form: Any, shape: Any) -> list[Tensor]:
    dense = to_dense(grad)
    return [dense if form is None else as_form(dense, form)]


@sparse_op("SparseMaskBackward0", params="pattern form",
           vjp=lambda grad, form, self_shape: _mask_back(grad, form, self_shape))
def masked_values(self: Tensor, pattern: SparseTensor, form: Any) -> SparseTensor:
    wanted, _ = coordinates(pattern)
    n = len(wanted)
    if is_sparse(self) and sparse_dim_of(self) == n:
        data = forms.values_at(*entries(self), wanted, self._array.shape)
    else:
        dense = to_dense(self)._array if is_sparse(self) else self._array
        data = dense[tuple(wanted)] if n else np.broadcast_to(
            dense, (wanted.shape[1], *dense.shape)).copy()
    return like(pattern, data.reshape(pattern._data.shape))


def masked(self: Tensor, pattern: SparseTensor) -> SparseTensor:
    return masked_values(self, bare(pattern), form_of(self))


# ---- forms --------------------------------------------------------------------------------------

def form_of(tensor: Tensor) -> Any:
    """What another tensor must be made to have the form of this one; None for dense."""
    if not is_sparse(tensor):
        return None
    sparse = sparse_dim_of(tensor)
    return tensor._layout, sparse, blocksize_of(tensor), tensor._array.ndim - sparse


def as_form(tensor: Tensor, form: Any) -> Tensor:
    """`tensor` with a layout as `form_of` tells it; itself if it has that."""
    found = form_of(tensor)
    if found == form:
        return tensor
    if form is None:
        return to_dense(tensor)
    return change_form(tensor, form, found)


def _change_form(self: Tensor, form: Any, before: Any) -> SparseTensor:
    layout, sparse, blocksize, _ = form
    shape = self._array.shape
    if is_sparse(self) and self._layout is not COO:
        # Entries stay as they come: places that are zero, columns before rows, whole blocks.
        indices, data = coordinates(self)
        if layout is COO:
            return make(COO, (indices,), data, shape, self._layout is forms.CSR)
    elif is_sparse(self):
        indices, data = entries(self)
        if len(indices) != sparse:
            indices, data = forms.nonzero_entries(forms.to_dense(indices, data, shape), sparse)
    else:
        indices, data = forms.nonzero_entries(self._array, sparse)
    if layout is COO:
        return make(COO, (indices,), data, shape, True)
    *where, data = forms.compress(indices, data, shape, layout, blocksize)
    if is_sparse(self) and self._layout is not COO:
        where = [part.astype(self._where[0].dtype) for part in where]
    return make(layout, tuple(where), data, shape)


def _form_back(grad: Tensor, before: Any) -> list[Tensor]:
    return [to_dense(grad) if before is None else as_form(grad, before)]


def _form_batched(size: int, dims: Any, self: Tensor, form: Any, before: Any) -> Any:
    """The slices' places side by side: one more sparse dimension, in front."""
    layout, sparse, _, dense = form
    if layout is not COO or before is not None:
        return _not_batched(size, dims)
    whole = movedim(self, dims[0], 0)
    return change_form(whole, (COO, sparse + 1, None, dense), None), 0


_changers = {node: sparse_op(node, params="form before", vjp=_form_back,
                             batch=_form_batched)(_change_form)
             for node in ("ToSparseBackward0", "ToSparseBackward1", "ToSparseCsrBackward0",
                          "ToSparseCscBackward0", "ToSparseBsrBackward0", "ToSparseBscBackward0")}


def change_form(tensor: Tensor, form: Any, before: Any, node: str = "ToSparseBackward1") -> Any:
    return _changers[node](tensor, form, before)


def _dense_back(grad: Tensor, self: Any, masked_grad: bool, form: Any) -> list[Tensor]:
    if not masked_grad:
        return [as_form(grad, form)]
    if is_sparse(self):
        return [masked(grad, coalesced(self))]
    return [as_form(mul(grad, densify(self, False, form) != 0), form)]      # under vmap


@sparse_op("ToDenseBackward0", params="masked_grad form", vjp=_dense_back,
           batch=lambda size, dims, self, masked_grad, form: (to_dense(self), 0))
def densify(self: SparseTensor, masked_grad: bool, form: Any) -> Tensor:
    return wrap(forms.to_dense(*entries(self), self._array.shape))


@member("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
        function=False)
def to_dense(self: Tensor, dtype: Any, masked_grad: bool | None) -> Tensor:
    """This tensor with all of its elements; itself if it is dense.

    The gradient of a sparse tensor is computed for the elements that it holds, or with
    `masked_grad=False` for all.
    """
    slices = self
    while hasattr(slices, "_value"):            # a slice, whatever the slice, under vmap
        slices = slices._value
    if slices is not self and is_sparse(slices):
        return densify(self, masked_grad is not False, form_of(slices))
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None and self._layout is COO:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    dense = densify(self, masked_grad is not False, form_of(self))
    if self._device is devices.meta:
        dense = on_meta(dense)
    return dense if dtype is None else dense.to(dtype)


# ---- what a sparse tensor can be asked ----------------------------------------------------------

def expect(tensor: Tensor, name: str, wanted: Any, what: str) -> None:
    layout = tensor.layout
    if layout not in wanted:
        raise RuntimeError(f"{name} expected {what} tensor layout but got {TITLES[layout]}")


def expect_coo(tensor: Tensor, name: str) -> None:
    expect(tensor, name, (COO,), "sparse coordinate")


@sparse_op("CoalesceBackward0", vjp=lambda grad: [grad])
def _coalesce(self: SparseTensor) -> SparseTensor:
    indices, data = entries(self)
    return make(COO, (indices,), data, self._array.shape, True)


def coalesced(tensor: SparseTensor) -> SparseTensor:
    return tensor if tensor._layout is not COO or tensor._coalesced else _coalesce(tensor)


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
                           f"{list(self._array.shape)} but mask has size "
                           f"{list(mask._array.shape)}")
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
    if len(data) and (sparse_dim != len(where) or dense_dim != data.ndim - 1
                      or any(a < b for a, b in zip(shape, self._array.shape))):
        raise RuntimeError("changing the number of sparse or dense dimensions, or shrinking the "
                           "size, of a non-empty sparse tensor is not supported: use "
                           "sparse_resize_and_clear_")
    if len(data):
        grown = np.zeros((len(data), *shape[sparse_dim:]), data.dtype)
        grown[tuple(slice(n) for n in data.shape)] = data
        return _become(self, make(COO, (where,), grown, shape, self._coalesced))
    return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)


@member("sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> "
        "Tensor(a!)", function=False)
def sparse_resize_and_clear_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int
                             ) -> Tensor:
    """Drop all entries and give this tensor another size, in place."""
    shape = tuple(size_of((size,)))
    return _become(self, make(COO, (np.zeros((sparse_dim, 0), np.int64),), np.zeros(
        (0, *shape[sparse_dim:]), self._array.dtype), shape))


def _become(self: SparseTensor, other: SparseTensor) -> SparseTensor:
    self.data = other
    bump(self)
    return self


@member("resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)", method=False)
def resize_as_sparse_(input: Tensor, the_template: SparseTensor) -> Tensor:
    """Give a sparse tensor the size and the numbers of dimensions of another, in place."""
    for tensor in (input, the_template):
        expect_coo(tensor, "resize_as_sparse_")
    return sparse_resize_(input, the_template.shape, sparse_dim_of(the_template),
                          the_template._array.ndim - sparse_dim_of(the_template))


# ---- without entries ---------------------------------------------------------------------------

def empty(shape: tuple[int, ...], dtype: np.dtype, layout: Any, sparse: int | None = None,
          blocksize: Any = None) -> SparseTensor:
    """A tensor without entries, `sparse` (by default all) of whose dimensions are sparse."""
    sparse = len(shape) if sparse is None else sparse
    dense = shape[sparse:]
    if layout is COO:
        return make(COO, (np.zeros((sparse, 0), np.int64),), np.zeros((0, *dense), dtype), shape)
    if sparse < 2 or (layout in BLOCKED and blocksize is None):
        raise NotImplementedError(f"an empty tensor of shape {list(shape)} with layout {layout}")
    *batch, rows, cols = shape[:sparse]
    height, width = blocksize or (1, 1)
    lines = rows // height if layout in BY_ROW else cols // width
    return make(layout, (np.zeros((*batch, lines + 1), np.int64), np.zeros((*batch, 0), np.int64)),
                np.zeros((*batch, 0, *(blocksize or ()), *dense), dtype), shape)


def without_entries(name: str, shape: tuple[int, ...], dtype: np.dtype, layout: Any,
                    requires_grad: bool, device: Any = devices.cpu) -> Tensor:
    """`zeros` and `empty` with a layout that is not strided."""
    if layout is type_info.mkldnn:
        from flambeau.ops.quantized import mkldnn as opaque
        return opaque.made(name, shape, dtype, requires_grad)
    if name == "empty_like":
        raise NotImplementedError("Could not run 'aten::empty_strided' with arguments from the "
                                  f"'{TITLES[layout]}CPU' backend: there is no rule for it.")
    if name not in ("zeros", "empty", "zeros_like"):
        raise RuntimeError(f"{name}(...) is not implemented for sparse layout")
    result = empty(shape, dtype, layout)
    if device is not devices.cpu:
        result._device = device
    return as_leaf(result) if requires_grad else result


def empty_like(pattern: SparseTensor, dtype: Any = None) -> SparseTensor:
    return empty(pattern._array.shape, dtype or pattern._array.dtype, pattern._layout,
                 sparse_dim_of(pattern), blocksize_of(pattern))


def zero_values(pattern: SparseTensor) -> SparseTensor:
    """Zeros at the places of `pattern`."""
    return like(pattern, np.zeros_like(pattern._data))




class Invariants:
    """Are indices checked where the caller does not say?"""

    enabled = False


# ---- how calls get here -------------------------------------------------------------------------

rules: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[..., Any]:
    """Enter a function as the rule of the ops of these names."""
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            rules[name] = function
        return function
    return enter


def tracked(*tensors: Any) -> bool:
    """Will an op on these be recorded?"""
    return grad_enabled() and any(type(t) in tensor_types and t.requires_grad for t in tensors)


def is_number(value: Any) -> bool:
    """A Python number or a tensor without dimensions."""
    return type(value) not in tensor_types or (not is_sparse(value) and not value._array.ndim)


def conjugate(value: Any) -> Any:
    if type(value) in tensor_types:
        return conjugated(value) if value._array.dtype.kind in "cW" else value
    return value.conjugate()


def to_coo(tensor: SparseTensor, sparse: int | None = None) -> SparseTensor:
    """`tensor` with coordinates of so many sparse dimensions."""
    sparse = sparse_dim_of(tensor) if sparse is None else sparse
    found: Any = as_form(tensor, (COO, sparse, None, tensor._array.ndim - sparse))
    return found


def unsupported(name: str, tensor: Tensor) -> NotImplementedError:
    """What PyTorch says where an op has no rule for a layout."""
    layout = tensor.layout
    where = TITLES[layout] + "CPU" if layout is COO else "CPU" if layout is type_info.strided \
        else "SparseCsrCPU"
    return could_not_run(name.rpartition(".")[2], where, "CPU", "Meta")


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with a sparse argument: the rule of its name. On meta its result has no
    values."""
    result = _by_rule(function, args, kwargs)
    given = _flat((*args, *kwargs.values()))
    if any(type(t) in tensor_types and t._device is devices.meta for t in given):
        return result if result is args[0] else on_meta(result)
    return result


def _by_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not rules:
        for family in ("math", "products", "reduce", "places"):     # these fill the table
            importlib.import_module(f"flambeau.ops.sparse.{family}")
    op = getattr(function, "op", None) or (function if isinstance(function, Op) else None)
    binder = getattr(op, "binder", None) or getattr(function, "twin", None)
    if isinstance(binder, Function):
        binder.choose(args, kwargs)             # a wrong call is that first of all
    name = (op.name if op is not None else function.__name__).lstrip("_")
    if op is not None and op.namespace not in (None, "torch") and "torch" not in op.namespace:
        name = f"{op.namespace}.{name}"
    if op is not None and op.inplace and is_sparse(args[0]):
        return write(op, args, kwargs)
    if op is not None and op.inplace and op.functional.name in rules:
        return write_result(op, args[0], args[1:], kwargs, True)    # into a dense tensor
    rule = rules.get(name)
    out = kwargs.pop("out", None) if "out" in kwargs else None
    if rule is not None:
        result = rule(*args, **kwargs)
        return result if out is None else replace(out, result)
    if op is not None and op.composite and name in ALSO_SPARSE:
        return op.direct(*args, **kwargs)
    if name in ("zeros", "empty") and is_sparse(out):
        wanted = kwargs.get("layout")
        if wanted is not None and wanted is not out._layout:
            raise RuntimeError(f"layout {TITLES[wanted]} does not match layout of out parameter "
                               f"({TITLES[out._layout]})")
        result = replace_all(out, empty(tuple(size_of(args or (kwargs["size"],))),
                                        out._array.dtype, out._layout))
        return as_leaf(result) if kwargs.get("requires_grad") else result
    raise unsupported(name, next(a for a in _flat((*args, *kwargs.values(), out)) if is_sparse(a)))


# composites whose bodies look at no element
ALSO_SPARSE = {"subtract", "multiply", "divide", "true_divide", "negative", "square",
               "absolute", "is_nonzero", "is_same_size", "is_floating_point", "is_complex",
               "is_signed", "numel", "result_type", "is_inference", "get_device", "is_conj",
               "is_neg", "resolve_neg", "validate_sparse_compressed_tensor_args"}


def _flat(args: Any) -> Any:
    for arg in args:
        if type(arg) in (tuple, list):
            yield from _flat(arg)
        else:
            yield arg


_OF_COALESCED = set("abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac log1p "
                    "nan_to_num rad2deg relu round sgn sign sin sinh sqrt tan tanh trunc".split())


def write(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """An in-place op on a sparse tensor: the op, whose result takes the tensor's place."""
    from flambeau.core.views import check_inplace
    target = args[0]
    name = op.functional.name
    if name not in rules and f"{name}_" not in rules:
        raise unsupported(op.name, target)
    needs = any(type(a) in tensor_types and a.requires_grad for a in args)
    check_inplace(target, needs)
    if name in _OF_COALESCED and target._layout is COO and not target._coalesced:
        raise RuntimeError(f"{name}_ requires coalesced input")
    source = bare(target)
    source._edge = target._edge
    result = rules[f"{name}_" if f"{name}_" in rules else name](source, *args[1:], **kwargs)
    return replace(target, result)


def replace(target: Tensor, result: Tensor) -> Tensor:
    """Give `target` the entries and the history of `result`."""
    from flambeau.core.views import rebase
    if not is_sparse(target) or not is_sparse(result):
        if is_sparse(target):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) "
                               "instead.")
        result = to_dense(result)
        return store(target, public["torch"]["add"].op, result)
    if result._array.shape != target._array.shape:
        raise RuntimeError(f"output with shape {list(target._array.shape)} doesn't match the "
                           f"broadcast shape {list(result._array.shape)}")
    data = result._data
    if data.dtype != target._array.dtype:
        check_stored("", target, result._array)
        data = convert(data, target._array.dtype)
    target._layout, target._where, target._data = result._layout, result._where, data
    target._coalesced = result._coalesced
    bump(target)
    if grad_enabled() and result._edge is not None:
        rebase(target, result._edge)
    return target


def replace_all(target: SparseTensor, result: SparseTensor) -> SparseTensor:
    """Give `target` the entries of `result`, and its size."""
    if target.requires_grad:
        raise RuntimeError("functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
    return _become(target, result)


# ---- gradients that arrive at leaves ------------------------------------------------------------

def first_gradient(grad: Tensor, unshared: bool, create_graph: bool) -> Tensor:
    """What becomes the gradient of a leaf that had none: `grad`'s own arrays if nobody else
    holds it, else a copy."""
    if not is_sparse(grad) or create_graph:
        kept = clone(grad)
        return kept if create_graph else detach(kept)
    parts = [*grad._where, grad._data]
    if unshared and all(p.flags.c_contiguous for p in parts):
        return bare(grad)
    return make(grad._layout, tuple(p.copy() for p in grad._where), grad._data.copy(),
                grad._array.shape, grad._coalesced)


def later_gradient(old: Tensor, grad: Tensor, create_graph: bool) -> Tensor:
    """The gradient of a leaf after another has arrived: written in place where torch does."""
    sparse = is_sparse(old)
    if sparse and not is_sparse(grad):
        return add(grad, old)
    if create_graph or not (sparse or is_sparse(grad)):
        return add(old, grad)
    return old.add_(grad)


overrides.own_rules[SparseTensor] = dispatch
for _family in ("create", "validate", "layouts"):
    importlib.import_module(f"flambeau.ops.sparse.{_family}")
__all__ = ["SparseTensor"]
