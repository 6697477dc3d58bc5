"""Choosing by a condition or by bounds: where, masked_fill, clamp, nan_to_num, fill."""
from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._support.settings import warn_user
from flambeau.core import dtypes, type_info
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import intercepts_ops
from flambeau.core.promotion import c_name, convert, result_type, scalar_operand, type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import views
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import as_element, beyond_c, too_large
from flambeau.ops.factory.create import scalar_tensor, zeros_like
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import as_number
from flambeau.ops.pointwise.comparison import isfinite
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.copying import copy
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first

# ---- where --------------------------------------------------------------------------------------


def _check_condition(condition: Tensor, *_: Any) -> None:
    kind = condition._array.dtype
    if kind == np.uint8:
        warn_user("where received a uint8 condition tensor. This behavior is deprecated and will "
                  "be removed in a future version of PyTorch. Use a boolean condition instead.")
    elif kind.kind != "b":
        raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                           f"with dtype {type_name(condition.dtype)}")


def _where_tensors(condition: Tensor, input: Any, other: Any) -> Any:
    """Numbers become tensors of the type of the result before they are chosen from."""
    given = (input, other)
    if all(isinstance(v, Tensor) for v in given):
        return NotImplemented
    arrays = [v._array for v in given if isinstance(v, Tensor)]
    target = result_type(arrays, [v for v in given if not isinstance(v, Tensor)])
    return where(condition, *[v if isinstance(v, Tensor) else scalar_tensor(
        v, dtype=target, layout=type_info.strided, device=condition.device) for v in given])


where = pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other)",
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other)",
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other)",
    "where.Scalar(Tensor condition, Scalar self, Scalar other)",
    kernel=kernels.where, conditions="condition", check_conditions=_check_condition, inplace=False,
    out="self", out_type="Expected out type to be {found} but got {out}", wraps=True,
    node="WhereBackward0", nondiff="condition", aten_calls=_where_tensors,
    vjp=lambda grad, condition, needs: (None, where(condition, grad, 0) if needs[1] else None,
                                        where(condition, 0, grad) if needs[2] else None),
    doc="""`input` where the condition holds, else `other`; with a condition alone, where it holds.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, -2.0])
    >>> flambeau.where(x > 0, x, 0)
    tensor([1., 0.])
    """)
@op("where(Tensor condition) -> Tensor[]", overload_of=where, out=False, method=False)
def positions(condition: Tensor) -> tuple[Tensor, ...]:
    return condition.nonzero(as_tuple=True)

# ---- masked_fill --------------------------------------------------------------------------------


def _check_mask(self: Tensor, mask: Tensor, value: Any) -> None:
    """Raise for masks that are not boolean."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{c_name(mask.dtype)}")


@compiled("masked_fill")
def _masked_fill_kernel(self: np.ndarray, mask: np.ndarray, value: Any) -> np.ndarray:
    own = self.dtype
    if isinstance(value, np.ndarray):
        if value.dtype != own:
            if value.dtype.kind in "uifc" and not value.ndim:
                as_element(value.item(), own)               # raises if it cannot be
            value = convert(value, own)
    elif own.kind != "f" or type(value) is not float or not -1e38 < value < 1e38:
        value = convert(np.asarray(as_element(value, own)), own)
    r = kernels.where(mask, value, self)
    return r if r.flags.c_contiguous else views.contiguous(r)


def _prepare_masked_fill(self: Tensor, mask: Tensor, value: Any) -> Any:
    """The arguments of a call; raises for a value with dimensions."""
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got "
                           f"tensor with {value._array.ndim} dimension(s).")
    return self, mask, value


def _masked_fill_vjp(grad: Tensor, mask: Tensor, needs: Any) -> Any:
    return (masked_fill(grad, mask, 0) if needs[0] else None, None,
            where(mask, grad, 0) if needs[2] else None)


masked_fill = pointwise(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)",
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value)",
    kernel=_masked_fill_kernel, canonical=_prepare_masked_fill, conditions="mask",
    check_conditions=_check_mask, fixed=True, out=False, nondiff="mask", overlap="anywhere fill",
    refuses=("masked_fill", "U8"), vjp=_masked_fill_vjp,
    doc="""`value`, a number or a 0-d tensor, where the mask is True; else the input.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, -2.0])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0.])
    """)

# ---- clamp --------------------------------------------------------------------------------------

# of bounds for which a kernel will do that looks for NaN in the tensor alone
_BOUNDS = frozenset({int, float, type(None)})
# What stands for a bound that is missing, by the type's character (bfloat16's is E).
_LIMITS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys("fdeE", (-inf, inf)),
    **{c: (int(np.iinfo(c).min), int(np.iinfo(c).max)) for c in "bBhilq"}}


def _is_representable(bound: Any, target: np.dtype) -> bool:
    """Is it no NaN, and no number that a half type would turn into infinity?"""
    return bound == bound and (target.itemsize > 2 or abs(bound) <= 65504 or abs(bound) == inf)


def _clamp_kernel(self: np.ndarray, min: Any = None, max: Any = None,
                  out: np.ndarray | None = None) -> np.ndarray:
    if min is None and max is None:
        raise RuntimeError(_NO_BOUND)
    kind = self.dtype.kind
    limits = _LIMITS.get(self.dtype.char)
    if limits is not None and type(min) in _BOUNDS and type(max) in _BOUNDS:
        low, high = (default if n is None else n for n, default in zip((min, max), limits))
        if kind not in "ui":
            if _is_representable(low, self.dtype) and _is_representable(high, self.dtype):
                return kernels.hardtanh(self, low, high, out)
        elif type(low) is type(high) is int and limits[0] <= low <= limits[1] and (
                limits[0] <= high <= limits[1]):
            return (kernels.clip if self.dtype.itemsize > 1 else kernels.hardtanh)(
                self, low, high, out)
    _refuse_clamp(self, min, max)
    if max is None:
        return kernels.maximum(self, _as_operand(min, self), out)
    if min is None:
        return kernels.minimum(self, _as_operand(max, self), out)
    return kernels.clip(self, _as_operand(min, self), _as_operand(max, self), out)


def _as_operand(bound: Any, array: np.ndarray) -> Any:
    """A bound of the elements of an array as a kernel's operand beside it."""
    if isinstance(bound, np.ndarray):
        return bound
    bounded = array.dtype.kind in "ui" or array.dtype.itemsize == 2
    return scalar_operand(array, as_element(bound, array.dtype) if bounded else bound)[1]


def _refuse_clamp(self: np.ndarray, min: Any, max: Any) -> None:
    """Raise for types that PyTorch's kernels do not take."""
    both = min is not None and max is not None
    if isinstance(min if max is None else max, np.ndarray):
        refuse(self, "bU8" if both else "U8",
               "clamp_cpu" if both else "maximum_cpu" if max is None else "minimum_cpu")
    else:
        refuse(self, "bU8", "clamp_scalar_cpu" if both else
               f"clamp_{'min' if max is None else 'max'}_scalar_cpu")


def _is_within_bounds(self: Tensor, min: Any, max: Any) -> Tensor:
    if max is None:
        return self >= min
    if min is None:
        return self <= max
    return (self >= min).logical_and_(self <= max)


def _zero(grad: Tensor) -> Any:
    """Nothing, in place of a gradient; where modes see ops, it is made before what tells where."""
    return scalar_tensor(0.0, dtype=grad.dtype, layout=grad.layout, device=grad.device) \
        if intercepts_ops() else 0


def _clamp_vjp(grad: Tensor, self: Tensor, min: Any, max: Any, needs: Any) -> Any:
    grads: list[Any] = [None, None, None]
    zero = _zero(grad)
    if needs[0]:
        grads[0] = where(_is_within_bounds(self, min, max), grad, zero)
    if needs[1] and min is not None:
        below = self < min if max is None else (self < min) & (min < max)
        grads[1] = where(below, grad, zero)
    if needs[2] and max is not None:
        above = self > max if min is None else (self > max) | (max < min)
        grads[2] = where(above, grad, zero)
    return grads


_COMPLEX_CLAMP = "clamp is not supported for complex types"
_NO_BOUND = "torch.clamp: At least one of 'min' or 'max' must not be None"


def _check_bounds(self: Tensor, min: Any, max: Any) -> None:
    if min is None and max is None:
        raise RuntimeError(_NO_BOUND)
    if self.is_complex():
        raise NotImplementedError(_COMPLEX_CLAMP)
    if self.is_floating_point() and complex in (type(min), type(max)):
        raise too_large(dtypes.float64.numpy)


def _check_bound(self: Tensor, bound: Any) -> None:
    """Of `clamp_min` and `clamp_max`: with tensors they are `maximum` and `minimum`."""
    if type(bound) is complex or (self.is_complex() and not isinstance(bound, Tensor)):
        raise NotImplementedError(_COMPLEX_CLAMP)


def _clamp_out_type(read: Any, out: Any, found: Any) -> str:
    return "" if any(isinstance(bound, Tensor) for bound in read[1:]) else FOUND_TYPE


clamp = pointwise(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)",
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None)", kernel=_clamp_kernel, raw=True,
    refuses=("clamp_cpu", "cW"), inplace_first=_check_bounds,
    vjp=_clamp_vjp, check_complex=_check_bounds, out_type=_clamp_out_type,
    aliases=("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
             "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"),
    doc="""min(max(input, min), max): each bound a number, a tensor, or absent.

    The gradient passes where the input is within the bounds, the bounds included.

    >>> import flambeau
    >>> flambeau.tensor([-2.0, 0.5, 2.0]).clamp(-1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """)
clamp_min = pointwise(
    "clamp_min(Tensor self, Scalar min)", "clamp_min.Tensor(Tensor self, Tensor min)",
    kernel=_clamp_kernel, refuses=("maximum_cpu", "cW"), check_complex=_check_bound,
    inplace_first=_check_bound, raw=True, out_type=_clamp_out_type,
    vjp=lambda grad, self, min, needs: _clamp_vjp(grad, self, min, None, (*needs, False))[:2],
    doc="max(input, min).")
clamp_max = pointwise(
    "clamp_max(Tensor self, Scalar max)", "clamp_max.Tensor(Tensor self, Tensor max)",
    kernel=lambda self, max: _clamp_kernel(self, None, max), refuses=("minimum_cpu", "cW"),
    check_complex=_check_bound, inplace_first=_check_bound, raw=True, out_type=_clamp_out_type,
    vjp=lambda grad, self, max, needs: _clamp_vjp(
        grad, self, None, max, (needs[0], False, needs[1]))[::2],
    doc="min(input, max).")


# ---- nan_to_num, fill ---------------------------------------------------------------------------


def _nan_to_num_kernel(self: np.ndarray, nan: float | None, posinf: float | None,
                       neginf: float | None) -> np.ndarray:
    if self.dtype not in FLOATING:
        return self.copy()
    if self.dtype.kind == "c":
        result = np.empty(self.shape, self.dtype)
        result.real = _nan_to_num_kernel(self.real, nan, posinf, neginf)
        result.imag = _nan_to_num_kernel(self.imag, nan, posinf, neginf)
        return result
    limit = _largest(self.dtype)
    from flambeau.kernels.pointwise import special  # which few programs need
    return special.nan_to_num(self, 0.0 if nan is None else nan,
                              limit if posinf is None else posinf,
                              -limit if neginf is None else neginf)


@cache
def _largest(dtype: np.dtype) -> float:
    return type_info.finfo(dtypes.from_numpy_dtype(dtype)).max


nan_to_num = pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)",
    kernel=_nan_to_num_kernel, refuses=("nan_to_num", "W8"),
    out_type="nan_to_num: dtype of out: {out} should be same as input: {found}",
    vjp=lambda grad, self: (where(isfinite(self), grad, 0),),
    doc="""NaN replaced by `nan` (0), and ±inf by `posinf` and `neginf` (the limits of the type).

    >>> import flambeau
    >>> flambeau.nan_to_num(flambeau.tensor([float("nan"), 1.0]), nan=-1.0)
    tensor([-1.,  1.])
    """)


@compiled("filled")
def _fill_kernel(self: np.ndarray, value: Any) -> np.ndarray:
    own = self.dtype
    if type(value) is int and not -2**63 <= value < 2**64:
        raise beyond_c(value)
    return views.full_like(self, convert(np.asarray(as_element(as_number(
        value, "fill_", "value", 1), own)), own))


def _prepare_fill(input: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    if value._array.ndim:
        raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                           f"{value._array.ndim} dimensions.")
    return input, value


def _fill_tensor_kernel(self: np.ndarray, value: np.ndarray) -> np.ndarray:
    if value.ndim:
        raise Misfit
    return views.full_like(self, convert(value, self.dtype))


def _fill_batched(size: int, dims: Any, self: Tensor, value: Tensor) -> Any:
    if dims[1] is None:
        return fill(self, value), dims[0]
    whole = batch_first(self, dims[0], size)
    values = reshape(value, (size, *(1,) * (whole._array.ndim - 1)))
    return copy(whole, values), 0


fill = op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    kernel=_fill_kernel, shape="self",
    inplace=True, inplace_function=True, inplace_node="FillBackward2", out=False,
    overlap="anywhere", d_self=0,
    jvp=lambda self_t: zeros_like(self_t),
    batch=lambda size, dims, self, value: (fill(self, value), dims[0]),
    doc="A tensor of the shape and type of `input` that holds `value`, a number or a 0-d tensor.")
op("fill.Tensor(Tensor self, Tensor value) -> Tensor", overload_of=fill,
   kernel=_fill_tensor_kernel, kind="linear", canonical=_prepare_fill, kernel_checks=True,
   shape="self", inplace=True, inplace_node="FillBackward3", out=False,
   d_self=0, node="FillBackward1", batch=_fill_batched,
   d_value=lambda grad, value_dtype: cast(grad.sum(), value_dtype))
zero = op(
    "zero(Tensor self) -> Tensor", kernel=lambda self: _fill_kernel(self, 0), shape="self",
    function=False, inplace=True, inplace_function=True, out=False,
    overlap="anywhere", d_self=0, jvp=lambda self_t: zeros_like(self_t),
    batch=lambda size, dims, self: (zero(self), dims[0]), doc="Zeros like `input`.")

for name in ("fill", "zero"):               # which are methods in place only
    delattr(Tensor, name)

__all__ = ["clamp", "masked_fill", "nan_to_num", "where"]
