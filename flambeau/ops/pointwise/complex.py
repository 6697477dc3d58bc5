"""Complex numbers: conjugates, parts, and views as pairs of reals."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, add_members, plain_types
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels import conj
from flambeau.kernels.moving import views
from flambeau.kernels.pointwise import complex as kernels
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.indexing.values import as_value
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import sgn
from flambeau.ops.view.conversion import contiguous
from flambeau.ops.view.shape import movedim, select

_conj = pointwise("_conj_physical(Tensor self) -> Tensor",
                  kernel=lambda x: conj(x) if x.dtype.kind in "cW" else x.copy(),
                  vjp=lambda grad: conjugated(grad), inplace=False, method=False,
                  doc="The complex conjugate in memory of its own; of a real tensor a copy.")


@op("conj_physical(Tensor self) -> Tensor", inplace=True, inplace_function=True,
    inplace_node="ConjPhysicalBackward1", out_type=FOUND_TYPE,
    out_reported_as="aten::conj_physical")
def conj_physical(self: Tensor) -> Tensor:
    """The complex conjugate in memory of its own; a real tensor itself."""
    return conjugated(self)


def conjugated(tensor: Tensor) -> Tensor:
    """The conjugate in memory of its own; a real tensor itself. `conj` is the view."""
    return _conj(tensor) if tensor._array.dtype.kind in "cW" else tensor


def _check_same_type(first: Tensor, second: Tensor) -> None:
    """Raise for parts of different types."""
    for part in (first, second):
        if part._array.dtype.char not in "efd":
            raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                               f"{type_name(first.dtype)} and {type_name(second.dtype)}")
    if first._array.dtype != second._array.dtype:
        raise RuntimeError(f"Expected object of scalar type {type_name(first.dtype)} but got "
                           f"scalar type {type_name(second.dtype)} for second argument")


_FLOATS = "Expected both inputs to be Half, Float or Double tensors but got {0} and {0}"
_OUT = "Expected object of scalar type {found} but got scalar type {out} for argument 'out'"

complex = pointwise(
    "complex(Tensor real, Tensor imag)", kernel=kernels.from_parts, check=_check_same_type,
    inplace=False, refuses=(_FLOATS, "bBilUcW8"), out_type=_OUT, method=False,
    vjp=lambda grad, needs: (real_view(grad) if needs[0] else None,
                             imag_view(grad) if needs[1] else None),
    jvp=lambda real_t, imag_t: complex(real_t, imag_t),
    doc="""real + i · imag, of two float tensors that broadcast.

    >>> import flambeau
    >>> flambeau.complex(flambeau.tensor([1.0]), flambeau.tensor([2.0]))
    tensor([1.+2.j])
    """)


def _polar_refusal(x: np.ndarray) -> str:
    return "polar_cpu" if x.dtype.char == "e" else _FLOATS


def _polar_vjp(grad: Tensor, result: Tensor, needs: Any) -> Any:
    grad = conjugated(grad)
    return (real_view(grad * sgn(result)) if needs[0] else None,
            real_view(grad * (result * 1j)) if needs[1] else None)


def _polar_jvp(abs: Tensor, angle: Tensor, result: Tensor, abs_t: Tensor,
               angle_t: Tensor) -> Tensor:
    turned = complex(abs_t * angle.cos(), abs_t * angle.sin())
    return turned + result * complex(zeros_like(angle_t), angle_t)


polar = pointwise(
    "polar(Tensor abs, Tensor angle)", kernel=kernels.polar, check=_check_same_type, inplace=False,
    refuses=(_polar_refusal, "bBilUecW8"), out_type=_OUT, method=False, vjp=_polar_vjp,
    jvp=_polar_jvp, autocast="full", doc="abs · (cos angle + i sin angle).")


_complex_part = op(
    "_complex_part(Tensor self, bool imaginary) -> Tensor", kernel=kernels.with_zeros,
    kind="linear", function=False, method=False, out=False,
    batch=lambda size, dims, self, imaginary: (_complex_part(self, imaginary), dims[0]),
    d_self=lambda grad, imaginary: imag_view(grad) if imaginary else real_view(grad),
    doc="A complex tensor with one part given and the other zero.")


def _view_pairs(self: Tensor) -> Tensor:
    return view_as_real(self)


real_view = op(
    "real_view(Tensor(a) self) -> Tensor(a)",
    kernel=lambda self: views.part(self, "real"), kind="linear", replay=_view_pairs, function=False,
    method=False, node="RealBackward0",
    aten_calls=lambda self: view_as_real(self).select(self.ndim, 0),
    d_self=lambda grad: _complex_part(grad, False),
    batch=lambda size, dims, self: (real_view(self), dims[0]))
imag_view = op(
    "imag_view(Tensor(a) self) -> Tensor(a)",
    kernel=lambda self: views.part(self, "imag"), kind="linear", replay=_view_pairs, function=False,
    method=False, node="ImagBackward0",
    aten_calls=lambda self: view_as_real(self).select(self.ndim, 1),
    d_self=lambda grad: _complex_part(grad, True),
    batch=lambda size, dims, self: (imag_view(self), dims[0]))


def _real_view(input: Tensor) -> Tensor:
    if input._array.dtype.kind not in "cW":
        return input
    if input._edge is None and not input._conjugated:
        return real_view(input)             # in one step, since no node will be seen
    return select(view_as_real(input.conj() if input._conjugated else input), -1, 0)


def _imag_view(input: Tensor) -> Tensor:
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input._edge is None and not input._conjugated:
        return imag_view(input)
    if input._conjugated:
        return select(view_as_real(input.conj())._neg_view(), -1, 1)
    return select(view_as_real(input), -1, 1)


real = op("real(Tensor(a) self) -> Tensor(a)", body=_real_view, method=False,
          doc="The real part, as a view; a real tensor itself.")
imag = op("imag(Tensor(a) self) -> Tensor(a)", body=_imag_view, method=False,
          doc="The imaginary part, as a view.")


def _set_part(part: Any) -> Any:
    def setter(self: Tensor, value: Any) -> None:
        written = part(self)
        written.copy_(as_value(value, written))
    return setter


add_members(real=property(real, _set_part(real)), imag=property(imag, _set_part(imag)))


def _prepare_view_as_real(input: Tensor) -> tuple[Tensor]:
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return (input,)


view_as_real = op(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    kernel=kernels.view_as_real, kind="linear", replay=True, canonical=_prepare_view_as_real,
    kernel_checks=True, method=False, batch=lambda size, dims, self: (view_as_real(self), dims[0]),
    d_self=lambda grad: view_as_complex(contiguous(grad)),
    doc="A complex tensor as a real one with a last dimension of 2, on the same memory.")


def _prepare_view_as_complex(input: Tensor) -> tuple[Tensor]:
    x = input._array
    if x.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, "
                           f"but got a tensor of scalar type: {type_name(input.dtype)}")
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if type(input) not in plain_types:
        return (input,)                     # a stand-in, whose own strides say nothing
    if x.size and x.strides[-1] != x.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(n != 1 and s % (2 * x.itemsize) for n, s in zip(x.shape[:-1], x.strides)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return (input,)


view_as_complex = op(
    "view_as_complex(Tensor(a) self) -> Tensor(a)", autocast="full",
    kernel=kernels.view_as_complex, kind="linear", replay=True, canonical=_prepare_view_as_complex,
    kernel_checks=True, method=False,
    batch=lambda size, dims, self: (
        view_as_complex(contiguous(movedim(self, dims[0], 0))), 0),
    d_self=lambda grad: view_as_real(contiguous(grad).resolve_conj()),
    doc="A real tensor with a last dimension of 2 as a complex one, on the same memory.")


def real_part(tensor: Tensor) -> Tensor:
    """`real` of complex numbers; real ones as they are."""
    return real_view(tensor) if tensor._array.dtype.kind in "cW" else tensor


