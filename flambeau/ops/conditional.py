"""Choosing by a condition or by bounds: where, masked_fill, clamp, nan_to_num, fill."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau import kernels, type_info
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.graph import next_order
from flambeau.core.modes import interceptors
from flambeau.core.op import SCALARS, checked_arguments, composite, linear, primitive, public
from flambeau.core.promotion import convert, result_type, scalar_operand, type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor, basis, plain, wrap
from flambeau.kernels import views
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import beyond_c, stored, wrong_types
from flambeau.ops.comparison import isfinite
from flambeau.ops.inplace import write
from flambeau.ops.node_names import rename
from flambeau.ops.pointwise import as_number, c_name

# ---- where --------------------------------------------------------------------------------------


@linear(lambda condition, self, other: kernels.where(condition, self, other),
        tensors=("condition", "self", "other"), core="(),(),()->()", node_name="WhereBackward0",
        method=False, namespace=None, name="where_tensors",
        d_self=lambda grad, condition: where(condition, grad, 0),
        d_other=lambda grad, condition: where(condition, 0, grad))
def where_tensors(condition: Tensor, input: Tensor, other: Tensor) -> Any:
    return condition, input, other


def where_operands(input: Any, other: Any) -> tuple[Tensor, Tensor]:
    """Tensors or numbers as tensors of one type."""
    arrays = [x._array for x in (input, other) if isinstance(x, Tensor)]
    if len(arrays) == 2 and arrays[0].dtype is arrays[1].dtype:
        return input, other
    if len(arrays) == 1 and arrays[0].dtype in FLOATING:
        number = other if isinstance(input, Tensor) else input
        if type(number) is float or type(number) is int:
            number = wrap(scalar_operand(arrays[0], number)[1])
            return (input, number) if isinstance(input, Tensor) else (number, other)
    numbers = [as_number(x, "where", "input", 2) for x in (input, other)
               if not isinstance(x, Tensor)]
    wanted = result_type(arrays, numbers).numpy
    return tuple([basis.cast(x, wanted) if isinstance(x, Tensor) and x._array.dtype != wanted
                  else x if isinstance(x, Tensor) else wrap(convert(np.asarray(x), wanted))
                  for x in (input, other)])


@composite
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition holds, else `other`; with a condition alone, where it holds.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, -2.0])
    >>> flambeau.where(x > 0, x, 0)
    tensor([1., 0.])
    """
    if input is None and other is None:
        if out is not None:
            raise TypeError("where() received an invalid combination of arguments: out= needs two "
                            "operands")
        return basis.nonzero(condition, as_tuple=True)
    kind = condition._array.dtype
    if kind.kind != "b":
        if kind != np.uint8:
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor "
                               f"with dtype {type_name(condition.dtype)}")
        warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and "
                      "will be removed in a future version of PyTorch. Use a boolean condition "
                      "instead.", UserWarning, stacklevel=3)
        condition = condition != 0
    a, b = where_operands(input, other)
    if not condition._array.shape == a._array.shape == b._array.shape:
        broadcast_shapes(condition._array.shape, a._array.shape, b._array.shape)
    result = where_tensors(condition, a, b)
    return result if out is None else basis.into(out, where.op, result, (condition, input, other))


Tensor.where = checked_arguments(
    lambda self, condition, other: where(condition, self, other), name="where")
Tensor.where.__doc__ = "This tensor's elements where the condition holds, else those of `other`."

# ---- masked_fill --------------------------------------------------------------------------------


def _check_mask(mask: Tensor) -> None:
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{c_name(mask)}")


def _filled(self: np.ndarray, mask: np.ndarray, value: Any) -> np.ndarray:
    r = kernels.where(mask, value, self)
    return r if r.flags.c_contiguous else views.contiguous(r)


@primitive(_filled, tensors=("self", "mask"),
           core="(),()->()", node_name="MaskedFillBackward0", method=False, namespace=None,
           d_self=lambda grad, mask: masked_fill(grad, mask, 0),
           jvp=lambda self_t, mask: masked_fill(self_t, mask, 0))
def _fill_number(input: Tensor, mask: Tensor, value: Any) -> Any:
    return input, mask, value


@linear(_filled, tensors=("self", "mask", "value"), core="(),(),()->()",
        node_name="MaskedFillBackward1", method=False, namespace=None,
        d_self=lambda grad, mask: masked_fill(grad, mask, 0),
        d_value=lambda grad, mask: where(mask, grad, 0))
def _fill_tensor(input: Tensor, mask: Tensor, value: Tensor) -> Any:
    return input, mask, value


@composite(method=True, inplace=True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value`, a number or a 0-d tensor, where the mask is True; else the input.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, -2.0])
    >>> x.masked_fill(x < 0, 0)
    tensor([1., 0.])
    """
    _check_mask(mask)
    own = input._array.dtype
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got "
                               f"tensor with {value._array.ndim} dimension(s).")
        if value._array.dtype == own:
            return _fill_tensor(input, mask, value)
        if type(value) in plain and value._array.dtype.kind in "uifc":
            stored(value._array.item(), own)            # raises if it cannot be
        return _fill_tensor(input, mask, basis.cast(value, own))
    return _fill_number(input, mask, stored(as_number(value, "masked_fill", "value", 3), own))


# ---- clamp --------------------------------------------------------------------------------------


def _clip(self: np.ndarray, min: Any, max: Any) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    if max is None:
        return kernels.maximum(self, min)
    if min is None:
        return kernels.minimum(self, max)
    if self.dtype.kind in "if" and _ordinary(min) and _ordinary(max):
        return kernels.hardtanh(self, min, max)     # which looks for NaN in `self` alone
    return kernels.clip(self, min, max)


def _ordinary(bound: Any) -> bool:
    return type(bound) in (int, float) and bound == bound


def _inside(self: Tensor, min: Any, max: Any) -> Tensor:
    if max is None:
        return self >= min
    if min is None:
        return self <= max
    return (self >= min) & (self <= max)


def _clamp_vjp(grad: Tensor, self: Tensor, min: Any, max: Any) -> Any:
    return where(_inside(self, min, max), grad, 0)


def _bounds_vjp(grad: Tensor, self: Tensor, min: Any, max: Any, needs: Any) -> Any:
    grads: list[Any] = [None, None, None]
    if needs[0]:
        grads[0] = _clamp_vjp(grad, self, min, max)
    if needs[1] and min is not None:
        below = self < min if max is None else (self < min) & (min < max)
        grads[1] = where(below, grad, 0)
    if needs[2] and max is not None:
        above = self > max if min is None else (self > max) | (max < min)
        grads[2] = where(above, grad, 0)
    return grads


def _number_clamp(name: str, node_name: str) -> Any:
    @primitive(_clip, kind="pointwise", vjp=_clamp_vjp, node_name=node_name, method=False,
               namespace=None, name=name)
    def clamp_number(input: Tensor, min: Any, max: Any) -> Any:
        if input._array.dtype in FLOATING and type(min) is not complex is not type(max):
            return input, min, max
        given = [n for n in (min, max) if n is not None]
        wanted = result_type([input._array], given).numpy
        if wanted.kind in "ui":
            min, max = (n if n is None else stored(n, wanted) for n in (min, max))
        return (basis.cast(input, wanted) if input._array.dtype != wanted else input), min, max
    return clamp_number


def _tensor_clamp(name: str, node_name: str) -> Any:
    @primitive(_clip, tensors=("self", "min", "max"), kind="pointwise", vjp=_bounds_vjp,
               node_name=node_name, method=False, namespace=None, params=(), name=name,
               nondiff={"clamp_min_tensors": "max", "clamp_max_tensors": "min"}.get(name, ()))
    def clamp_tensors(input: Tensor, min: Tensor | None, max: Tensor | None) -> Any:
        given = [t for t in (input, min, max) if t is not None]
        wanted = result_type([t._array for t in given]).numpy
        return tuple([t if t is None or t._array.dtype == wanted else basis.cast(t, wanted)
                      for t in (input, min, max)])
    return clamp_tensors


_CLAMPS = {name: (_number_clamp(f"{name}_number", number), _tensor_clamp(f"{name}_tensors", tensor))
           for name, number, tensor in (("clamp", "ClampBackward1", "ClampBackward0"),
                                        ("clamp_min", "ClampMinBackward0", "ClampMinBackward1"),
                                        ("clamp_max", "ClampMaxBackward0", "ClampMaxBackward1"))}


_BOUNDS = {"clamp": "(Tensor input, Tensor min = None, Tensor max = None); (Tensor input, Number "
                    "min = None, Number max = None)"} | {
    f"clamp_{b}": f"(Tensor input, Tensor {b}); (Tensor input, Number {b})" for b in ("min", "max")}


def _clamped(name: str, input: Tensor, min: Any, max: Any) -> Tensor:
    numbers, tensors = _CLAMPS[name]
    if not isinstance(input, Tensor):
        raise wrong_types(name, (input, *[b for b in (min, max) if b is not None]), _BOUNDS[name])
    if type(min) in SCALARS and type(max) in SCALARS:
        return numbers(input, min, max)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        if all(b is None or isinstance(b, Tensor) for b in (min, max)):
            return tensors(input, min, max)
    elif all(b is None or isinstance(b, (int, float, complex, np.generic)) for b in (min, max)):
        return numbers(input, *[b if b is None else as_number(b, name, "min", 2)
                                for b in (min, max)])
    raise wrong_types(name, (input, *[b for b in (min, max) if b is not None]), _BOUNDS[name])


@composite(method=True, inplace=True, aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """min(max(input, min), max): each bound a number, a tensor, or absent.

    The gradient passes where the input is within the bounds, the bounds included.

    >>> import flambeau
    >>> flambeau.tensor([-2.0, 0.5, 2.0]).clamp(-1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    result = _clamped("clamp", input, min, max)
    return result if out is None else basis.into(out, clamp.op, result, (input, min, max))


@composite(method=True, inplace=True)
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Tensor:
    """max(input, min)."""
    result = _clamped("clamp_min", input, min, None)
    return result if out is None else basis.into(out, clamp_min.op, result, (input, min))


@composite(method=True, inplace=True)
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Tensor:
    """min(input, max)."""
    result = _clamped("clamp_max", input, None, max)
    return result if out is None else basis.into(out, clamp_max.op, result, (input, max))


# ---- nan_to_num, fill ---------------------------------------------------------------------------


def _replaced(self: np.ndarray, nan: float, posinf: float | None,
              neginf: float | None) -> np.ndarray:
    if self.dtype not in FLOATING:
        return self.copy()
    refuse(self, "W8", "nan_to_num")
    if self.dtype.kind == "c":
        result = np.empty(self.shape, self.dtype)
        result.real = _replaced(self.real, nan, posinf, neginf)
        result.imag = _replaced(self.imag, nan, posinf, neginf)
        return result
    limits = type_info.finfo(dtypes.from_numpy_dtype(self.dtype))
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    result = kernels.where(kernels.isnan(self), nan, self)
    result = kernels.where(kernels.equal(self, float("inf")), high, result)
    return kernels.where(kernels.equal(self, -float("inf")), low, result)


@primitive(_replaced, kind="pointwise", inplace=True,
           vjp=lambda grad, self: where(isfinite(self), grad, 0))
def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Any:
    """NaN replaced by `nan` (0), and ±inf by `posinf` and `neginf` (the limits of the type).

    >>> import flambeau
    >>> flambeau.nan_to_num(flambeau.tensor([float("nan"), 1.0]), nan=-1.0)
    tensor([-1.,  1.])
    """
    return input, 0.0 if nan is None else nan, posinf, neginf


@primitive(views.full_like, kind="pointwise", d_self=0,
           inplace=True, node_name="FillBackward0", name="fill_number", namespace=None,
           method=False)
def _filled(input: Tensor, value: Any) -> Any:
    own = input._array.dtype
    return input, convert(np.asarray(stored(as_number(value, "fill_", "value", 1), own)), own)


@composite
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of the shape and type of `input` that holds `value`, a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        _check_fill(value)
        return _filled(input, 0) + basis.cast(value, input._array.dtype)
    return _filled(input, value)


def _check_fill(value: Tensor) -> None:
    if value._array.ndim:
        raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                           f"{value._array.ndim} dimensions.")


_slowly = _filled.op.inplace_op.function


def fill_(self: Tensor, value: Any) -> Tensor:
    """Store `value`, a number or a 0-d tensor, in every element; returns the tensor."""
    since = 0 if self._edge is None else next_order()
    if isinstance(value, Tensor):
        _check_fill(value)
        return _known(self.copy_(value), "FillBackward3", since)
    if interceptors or type(self) not in plain or self._edge is not None:
        return _known(_slowly(self, value), "FillBackward2", since)
    own = self._array.dtype
    if type(value) is int and not -2**63 <= value < 2**64:
        raise beyond_c(value)
    if type(value) in (float, int) and own.kind == "f" and (
            own.itemsize == 8 or (own.itemsize == 4 and -1e38 < value < 1e38)):
        return write(self, value)
    return write(self, convert(np.asarray(stored(as_number(value, "fill_", "value", 1), own)), own))


def zero_(self: Tensor) -> Tensor:
    """Store 0 in every element; returns the tensor."""
    if self._edge is None:
        return fill_(self, 0)
    since = next_order()
    return _known(fill_(self, 0), "ZeroBackward0", since)


def _known(result: Tensor, name: str, since: int) -> Tensor:
    if since and result._base is None:      # of a view, the node is hidden in its base's
        rename(result, name, since)
    return result


fill_, zero_ = checked_arguments(fill_), checked_arguments(zero_)
Tensor.fill_, Tensor.zero_ = fill_, zero_
_filled.op.inplace_op.published = Tensor.fill_
public["torch"] |= {"fill_": fill_, "zero_": zero_}

basis.where, basis.masked_fill = where, masked_fill
__all__ = ["clamp", "masked_fill", "nan_to_num", "where", "where_operands"]
