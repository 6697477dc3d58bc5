"""Complex numbers: conjugates, parts, and views as pairs of reals."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core import dtypes
from flambeau.core.dtypes import as_numpy_dtype, from_numpy_dtype
from flambeau.core.op import composite, linear, primitive
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, basis, plain
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels import views
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.coercion import check_tensors
from flambeau.ops.create import full_like
from flambeau.ops.node_names import one_node
from flambeau.ops.refusals import refusing

_conj = pointwise("conj_physical(Tensor self) -> Tensor",
                  kernel=lambda x: kernels.conj(x) if x.dtype.kind in "cW" else x.copy(),
                  vjp=lambda grad: conjugated(grad),
                  doc="The complex conjugate in memory of its own.")


def conjugated(tensor: Tensor) -> Tensor:
    """The conjugate in memory of its own; a real tensor itself. `conj` is the view."""
    return _conj(tensor) if tensor._array.dtype.kind in "cW" else tensor


def join_parts(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    wanted = _complex_type(real.dtype)
    r = views.empty_like(real, wanted) if real.shape == imag.shape \
        else np.empty(np.broadcast_shapes(real.shape, imag.shape), wanted)
    views.part(r, "real")[...], views.part(r, "imag")[...] = real, imag
    return r


def _complex_type(part: np.dtype) -> np.dtype:
    return from_numpy_dtype(part).to_complex().numpy


@primitive(join_parts, tensors=("real", "imag"), kind="linear", core="(),()->()", method=False,
           d_real=lambda grad: real_view(grad), d_imag=lambda grad: imag_view(grad))
def complex(real: Tensor, imag: Tensor) -> Any:
    """real + i · imag, of two float tensors that broadcast.

    >>> import flambeau
    >>> flambeau.complex(flambeau.tensor([1.0]), flambeau.tensor([2.0]))
    tensor([1.+2.j])
    """
    check_tensors("complex", real=real, imag=imag)
    for part in (real, imag):
        if part._array.dtype.kind != "f":
            raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                               f"{type_name(real.dtype)} and {type_name(imag.dtype)}")
    if real._array.dtype != imag._array.dtype:
        raise RuntimeError(f"Expected object of scalar type {type_name(real.dtype)} but got scalar "
                           f"type {type_name(imag.dtype)} for second argument")
    return real, imag


@composite
@refusing("bBilU", "Expected both inputs to be Half, Float or Double tensors but got {0} and "
          "{0}")
@one_node
def polar(abs: Tensor, angle: Tensor, *, out: Any = None) -> Tensor:
    """abs · (cos angle + i sin angle)."""
    check_tensors("polar", abs=abs, angle=angle)
    if abs.dtype is not angle.dtype:
        raise RuntimeError(f"Expected object of scalar type {type_name(abs.dtype)} but got scalar "
                           f"type {type_name(angle.dtype)} for second argument")
    if abs._array.dtype.char not in characters("ef") or abs.dtype.name == "bfloat16":
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{type_name(abs.dtype)} and {type_name(angle.dtype)}")
    refuse(abs._array, "e", "polar_cpu")
    result = complex(abs * angle.cos(), abs * angle.sin())
    return result if out is None else basis.into(out, polar.op, result)


def _as_complex(part: np.ndarray, imaginary: bool) -> np.ndarray:
    r = np.zeros(part.shape, _complex_type(part.dtype))
    views.part(r, "imag" if imaginary else "real")[...] = part
    return r


@linear(_as_complex, method=False, namespace=None,
        batch=lambda size, dims, self, imaginary: (_complex_part(self, imaginary), dims[0]),
        d_self=lambda grad, imaginary: imag_view(grad) if imaginary else real_view(grad))
def _complex_part(input: Tensor, imaginary: bool) -> Any:
    """A complex tensor with one part given and the other zero."""
    return input, imaginary


@linear(lambda self: views.part(self, "real"), view="replay", method=False, namespace=None,
        node_name="RealBackward0", d_self=lambda grad: _complex_part(grad, False),
        batch=lambda size, dims, self: (real_view(self), dims[0]))
def real_view(input: Tensor) -> Any:
    return (input,)


@linear(lambda self: views.part(self, "imag"), view="replay", method=False, namespace=None,
        node_name="ImagBackward0", d_self=lambda grad: _complex_part(grad, True),
        batch=lambda size, dims, self: (imag_view(self), dims[0]))
def imag_view(input: Tensor) -> Any:
    return (input,)


@composite
def real(input: Tensor) -> Tensor:
    """The real part, as a view; a real tensor itself."""
    if not input.dtype.is_complex:
        return input
    if input._edge is None and not input._conjugated:
        return real_view(input)             # in one step, since no node will be seen
    return basis.select(view_as_real(basis.conj_view(input) if input._conjugated else input), -1, 0)


@composite
def imag(input: Tensor) -> Tensor:
    """The imaginary part, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input._edge is None and not input._conjugated:
        return imag_view(input)
    if input._conjugated:
        return basis.select(basis.neg_view(view_as_real(basis.conj_view(input))), -1, 1)
    return basis.select(view_as_real(input), -1, 1)


def _set_part(part: Any) -> Any:
    def setter(self: Tensor, value: Any) -> None:
        part(self).copy_(value if isinstance(value, Tensor) else full_like(part(self), value))
    return setter


Tensor.real = property(real, _set_part(real))
Tensor.imag = property(imag, _set_part(imag))


def _view_as_real(self: np.ndarray) -> np.ndarray:
    return self[..., np.newaxis].view(_PART.get(self.dtype, np.float16))


_PART = {np.dtype(np.complex64): np.dtype(np.float32),
         np.dtype(np.complex128): np.dtype(np.float64)}


def _buffer(x: np.ndarray) -> tuple[Any, int]:
    """The memory that x looks at, in one row, and how many bytes into it x starts."""
    from flambeau.core.tensor import array_offset, array_root
    start, item = array_offset(x), x.itemsize
    return views.strided(x, (array_root(x).nbytes // item,), (item,), -start), start


@linear(_view_as_real, view="replay", d_self=lambda grad: view_as_complex(basis.contiguous(grad)),
        method=False, batch=lambda size, dims, self: (view_as_real(self), dims[0]))
def view_as_real(input: Tensor) -> Any:
    """A complex tensor as a real one with a last dimension of 2, on the same memory."""
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return (input,)


def _view_as_complex(self: np.ndarray) -> np.ndarray:
    target = _complex_type(self.dtype)
    return np.ndarray(self.shape[:-1], target, *_buffer(self), self.strides[:-1])


@linear(_view_as_complex, view="replay", d_self=lambda grad: view_as_real(basis.contiguous(grad)),
        method=False, batch=lambda size, dims, self: (
            view_as_complex(basis.contiguous(basis.movedim(self, dims[0], 0))), 0))
def view_as_complex(input: Tensor) -> Any:
    """A real tensor with a last dimension of 2 as a complex one, on the same memory."""
    x = input._array
    if x.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, "
                           f"but got a tensor of scalar type: {input.dtype}")
    if not x.ndim or x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if type(input) not in plain:
        return (input,)                     # a stand-in, whose own strides say nothing
    if x.size and x.strides[-1] != x.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if x.size and any(s % (2 * x.itemsize) for s in x.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return (input,)


def _reinterpreted(self: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same bytes as another type; the last dimension grows or shrinks with the size of one."""
    old, new = self.itemsize, dtype.itemsize
    if old == new or not self.ndim:
        return views.strided(self, self.shape, self.strides, 0).view(dtype)
    if old > new:
        shape = (*self.shape[:-1], self.shape[-1] * (old // new))
        strides = (*self.strides[:-1], new)
    else:
        shape = (*self.shape[:-1], self.shape[-1] // (new // old))
        strides = (*self.strides[:-1], new)
    return np.ndarray(shape, dtype, *_buffer(self), strides)


@linear(_reinterpreted, view="replay", d_self=None, method=False, namespace=None,
        node_name="ViewBackward1",
        batch=lambda size, dims, self, dtype: (
            reinterpret(basis.contiguous(basis.movedim(self, dims[0], 0)), dtype), 0))
def reinterpret(input: Tensor, dtype: np.dtype) -> Any:
    """A view of the same memory as another type."""
    return input, dtype


def view_as_dtype(input: Tensor, dtype: Any) -> Tensor:
    """`view(dtype)`, with what torch requires of sizes and strides."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or not isinstance(dtype, dtypes.dtype):
        raise TypeError("view(): argument must be a size or a torch.dtype, not "
                        f"{type(dtype).__name__}")
    x = input._array
    old, new = x.itemsize, wanted.itemsize
    if old != new:
        if not x.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {type_name(input.dtype)} as "
                               f"{type_name(dtype)} (different element sizes)")
        if x.strides[-1] != old and x.shape[-1] != 1:
            raise RuntimeError("self.stride(-1) must be 1 to view "
                               f"{type_name(input.dtype)} as {type_name(dtype)} (different element "
                               f"sizes), but got {x.strides[-1] // old}")
        if new > old and (x.shape[-1] * old) % new:
            raise RuntimeError(f"self.size(-1) must be divisible by {new // old} to view "
                               f"{type_name(input.dtype)} as {type_name(dtype)} (different element "
                               f"sizes), but got {x.shape[-1]}")
        if new > old and any(s % new for s in x.strides[:-1]):
            raise RuntimeError(f"self.stride(0) must be divisible by {new // old} to view "
                               f"{type_name(input.dtype)} as {type_name(dtype)} (different element "
                               "sizes)")
    return input if input.dtype is dtype else reinterpret(input, wanted)


basis.view_as_dtype = view_as_dtype
basis.conj = conjugated
basis.real = lambda tensor: real_view(tensor) if tensor._array.dtype.kind in "cW" else tensor
