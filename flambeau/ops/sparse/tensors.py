"""Sparse tensors: what they are and what they hold.

A `SparseTensor` keeps indices and values as arrays; in place of all of its elements it has an array
of its shape and type that takes the memory of one. No kernel of a dense op may see that: `calls`
answers each public call with a sparse argument by the rule for its op, or says that there is none.

Ops on sparse tensors are declared as all others are, with formulas of their gradients, but their
kernels take tensors. Two of them carry the rest: `with_values` makes a sparse tensor of values and
somebody else's indices, `values_of` gives the values, and each is the other's derivative.
"""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core import devices, type_info
from flambeau.core.calling import overrides
from flambeau.core.modes import grad_enabled
from flambeau.core.op import public
from flambeau.core.shapes import Size, size_of
from flambeau.core.tensor import LEAF, SeenAsTensor, Tensor, tensor_types, wrap
from flambeau.dispatch.backend_errors import without_kernel
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.compressed import BLOCKED, BY_ROW, COO, TITLES
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


class SparseTensor(SeenAsTensor, Tensor):
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
        return without_history(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not is_sparse(value):
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                               "`tensor` have incompatible tensor type.")
        self._array, self._layout, self._where = value._array, value._layout, value._where
        self._data, self._coalesced = value._data, value._coalesced

    def stride(self, dim: int | None = None) -> Any:
        if self._layout is not COO:
            raise RuntimeError(f"Sparse {TITLES[self._layout][6:].upper()} tensors do not have "
                               "strides")
        return (0,) * self._array.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if self._layout is not COO:
            raise RuntimeError(f"Sparse {TITLES[self._layout][6:].upper()} tensors do not have "
                               "is_contiguous")
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
        return self.detach().to_dense().item()

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
        return overrides.own_rules[SparseTensor](Tensor.__getitem__, (self, index), {})

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


SparseTensor.__module__ = "torch"
SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
overrides.internal_types.add(SparseTensor)
overrides.sparse_types.add(SparseTensor)


_BETA = ("Sparse {} tensor support is in beta state. If you miss a functionality in the sparse "
         "tensor support, please submit a feature request to https://github.com/pytorch/pytorch/issues.")


def make_sparse(layout: Any, where: tuple[np.ndarray, ...], data: np.ndarray, shape: Any,
                coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, which are not checked."""
    tensor = object.__new__(SparseTensor)
    shape = tuple(shape)
    tensor._array = np.ndarray(shape, data.dtype, _ZEROS, 0, (0,) * len(shape))
    tensor._edge = tensor._base = tensor._counter = None
    tensor._layout, tensor._where, tensor._data = layout, where, data
    if layout is not COO:
        warn_once(_BETA.format(layout.name[-3:].upper()), key=_BETA)
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
    result = make_sparse(layout, where, data, shape, coalesced)
    result._edge = LEAF if requires_grad else None
    return result


def like(pattern: SparseTensor, data: np.ndarray) -> SparseTensor:
    """Other values at the places of `pattern`."""
    result = make_sparse(pattern._layout, pattern._where, data, pattern._array.shape)
    if pattern._device is not devices.cpu:
        result._device = pattern._device
    result._coalesced = pattern._coalesced
    return result


def without_history(tensor: SparseTensor) -> SparseTensor:
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


# ---- without entries ---------------------------------------------------------------------------

def empty(shape: tuple[int, ...], dtype: np.dtype, layout: Any, sparse: int | None = None,
          blocksize: Any = None) -> SparseTensor:
    """A tensor without entries, `sparse` (by default all) of whose dimensions are sparse."""
    sparse = len(shape) if sparse is None else sparse
    dense = shape[sparse:]
    if layout is COO:
        return make_sparse(COO, (np.zeros((sparse, 0), np.int64),), np.zeros((0, *dense), dtype),
                           shape)
    if sparse < 2 or (layout in BLOCKED and blocksize is None):
        raise NotImplementedError(f"an empty tensor of shape {list(shape)} with layout {layout}")
    *batch, rows, cols = shape[:sparse]
    height, width = blocksize or (1, 1)
    lines = rows // height if layout in BY_ROW else cols // width
    where = np.zeros((*batch, lines + 1), np.int64), np.zeros((*batch, 0), np.int64)
    return make_sparse(layout, where,
                       np.zeros((*batch, 0, *(blocksize or ()), *dense), dtype), shape)


def empty_like(pattern: SparseTensor, dtype: Any = None) -> SparseTensor:
    return empty(pattern._array.shape, dtype or pattern._array.dtype, pattern._layout,
                 sparse_dim_of(pattern), blocksize_of(pattern))


def zero_values(pattern: SparseTensor) -> SparseTensor:
    """Zeros at the places of `pattern`."""
    return like(pattern, np.zeros_like(pattern._data))


class Invariants:
    """Are indices checked where the caller does not say?"""

    enabled = False
    said = False                # has the program chosen?

    @classmethod
    def set(cls, enabled: bool | None) -> None:
        """What the program chooses."""
        cls.enabled, cls.said = bool(enabled), True

    @classmethod
    def hold(cls, here: bool | None) -> bool:
        """Are the indices of a new tensor checked, where the caller says `here`?"""
        if here is None and not cls.said:
            warn_once("Sparse invariant checks are implicitly disabled. Memory errors (e.g. "
                      "SEGFAULT) will occur when operating on a sparse tensor which violates the "
                      "invariants, but checks incur performance overhead. To silence this warning, "
                      "explicitly opt in or out. See "
                      "`torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance. ")
        return cls.enabled if here is None else here


# ---- what rules ask -------------------------------------------------------------------------


def is_recorded(*tensors: Any) -> bool:
    """Will an op on these be recorded?"""
    if grad_enabled():
        for t in tensors:
            if type(t) in tensor_types and t.requires_grad:
                return True
    return False


def is_number(value: Any) -> bool:
    """A Python number or a tensor without dimensions."""
    return type(value) not in tensor_types or (not is_sparse(value) and not value._array.ndim)


def conjugate(value: Any) -> Any:
    if type(value) in tensor_types:
        return conjugated(value) if value._array.dtype.kind in "cW" else value
    return value.conjugate()


def unsupported(name: str, tensor: Tensor, others: tuple[Any, ...] = (), out: Any = None
                ) -> NotImplementedError:
    """What PyTorch says where an op has no rule for a layout; `others` are the further arguments,
    which tell overloads apart."""
    return without_kernel(name, backend_of(tensor), others, out)


def backend_of(tensor: Tensor) -> str:
    """PyTorch's name of what holds a tensor of some layout."""
    layout = tensor.layout
    return "SparseCPU" if layout is COO else "CPU" if layout is type_info.strided \
        else "SparseCsrCPU"


__all__ = ["SparseTensor"]
