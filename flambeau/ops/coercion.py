"""The rare cases of a call: arguments that are not plain tensors, results that go into `out=`."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._support.c_functions import type_name
from flambeau._support.settings import warn_of_lost_parts, warn_user
from flambeau.core import dtypes
from flambeau.core.calling import overrides
from flambeau.core.copy_on_write import own
from flambeau.core.devices import cpu, meta
from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.modes import grad_enabled, interceptors, levels
from flambeau.core.op import Op
from flambeau.core.promotion import c_name, convert
from flambeau.core.return_types import ReturnType, with_out
from flambeau.core.shapes import written_shape_error
from flambeau.core.tensor import Tensor, plain_types, tensor_types
from flambeau.core.type_info import finfo
from flambeau.core.views import check_places, count_write
from flambeau.kernels.dtypes import compute_dtype
from flambeau.kernels.moving import views
from flambeau.ops.inplace import any_requires_grad, type_of_result
from flambeau.ops.out_types import FOUND_TYPE, check_out_type, other_device, refuse_gradients
from flambeau.ops.overlap import (
    allows_internal_overlap,
    check_overlap,
    check_resized_overlap,
)
from flambeau.ops.resizing import resized
from flambeau.transforms.meta import meta_array, on_meta


def unwrap_slices(tensor: Any) -> Any:
    """What a tensor wraps, below all levels of vmap: all slices in one."""
    while hasattr(tensor, "_value"):
        tensor = tensor._value
    return tensor


def values_below(tensor: Tensor) -> np.ndarray:
    """The array behind a tensor, below all wrappers of vmap."""
    return unwrap_slices(tensor)._array


def check_tensors(name: str, **given: Any) -> None:
    """Raise unless all arguments are tensors, as the C++ function of that name would."""
    for position, (argument, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be "
                            f"Tensor, not {type_name(value)}")


def as_users_pass_them(op: Op, canonical: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """Canonical arguments of an op that is declared by its schema, by place and by name."""
    given = {name: from_numpy_dtype(value) if isinstance(value, np.dtype) else value
             for name, value in zip((*op.tensors, *op.params), canonical)}
    own = op.schema.parameters
    return (tuple([given.get(p.name, p.value) for p in own if not p.by_name]),
            {p.name: given[p.name] for p in own if p.by_name and given.get(p.name) is not None})


def coerce_general(op: Op, canonical: Any) -> Any:
    """A call of any other op whose tensors are not all plain."""
    if overrides.needs_override(canonical):
        args, kwargs = (canonical, {}) if op.schema is None else as_users_pass_them(op, canonical)
        return overrides.call(op, args, kwargs)
    inputs = op.inputs(canonical)
    for position, tensor in enumerate(inputs):
        if tensor is not None and type(tensor) not in tensor_types:
            label = (f"expected Tensor as element {position} in argument 0, but got "
                     if op.variadic else "")
            if label:
                raise TypeError(label + type(tensor).__name__)
            argument = "input" if position == 0 else op.tensors[position]
            raise TypeError(f"{op.name}(): argument '{argument}' (position {position + 1}) must be "
                            f"Tensor, not {type_name(tensor)}")
    if any(t is not None and t._device is not cpu for t in inputs):
        return on_meta(op, canonical)
    return op.direct(*canonical)


def each_result(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """`value` with `change` of each tensor in it."""
    if type(value) in tensor_types:
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[each_result(v, change) for v in value])
    if isinstance(value, list | tuple):
        parts = [each_result(v, change) for v in value]
        return parts if isinstance(value, list) else type(value)(tuple(parts))
    return value


# ---- numbers that are stored among elements ------------------------------------------------------

_LARGEST = float(np.finfo(np.float32).max)


@cache
def _largest(dtype: np.dtype) -> float:
    return finfo(from_numpy_dtype(dtype)).max


def as_element(value: Any, target: np.dtype) -> Any:
    """A Python number as one that an element of that type can hold; raises where it cannot.

    Numbers for integers are cut off, and negative ones for unsigned types wrap around.
    """
    if target.kind in "cW" or target.kind == "b":
        return value if target.kind in "cW" else bool(value)
    if type(value) is complex:
        if value.imag:
            raise too_large(target)
        value = value.real
    if target.kind not in "ui":
        if abs(value) > _largest(target) and abs(value) != float("inf"):
            raise too_large(target)
        return value
    limits = np.iinfo(target)
    if value != value:
        raise too_large(target)
    low = -limits.max if target.kind == "u" and type(value) is not float else limits.min
    if not low <= value <= limits.max:
        raise too_large(target)
    return int(value) % (limits.max + 1) if target.kind == "u" else int(value)


def within(x: np.ndarray, number: Any) -> Any:
    """`number` if it fits the type that elements of x are computed in; PyTorch's error if not."""
    if type(number) in (float, int) and -_LARGEST <= number <= _LARGEST and x.dtype in FLOATING:
        return number
    return as_element(number, compute_dtype(x.dtype) if x.dtype in FLOATING else x.dtype)


def beyond_c(value: int) -> OverflowError:
    """An integer of more than 64 bits, where PyTorch reads a number."""
    return OverflowError("int too big to convert" if value > 0 else
                         "can't convert negative int to unsigned")


def too_large(target: np.dtype) -> RuntimeError:
    name = f"{target.name}_t" if target.kind in "iu" and target.name != "int32" else c_name(target)
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


# ---- out= ---------------------------------------------------------------------------------------

def store(out: Any, op: Any, result: Any, read: Any = ()) -> Any:
    """Store the result of `op`, which has `read` those arguments, into `out=`, a tensor (or one for
    each result), and return that."""
    if interceptors:
        _refuse_tangents(op, out, read)
        _refuse_slices(op, out, result)
        for level in levels.get():
            if hasattr(level, "before_write") and type(out) in tensor_types:
                level.before_write(out)
    if isinstance(result, tuple):
        if _gives_list(op):
            return _store_list(out, op, result, read)
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not "
                            f"{type_name(out)}")
        for one, value in zip(out, result):
            store_one(one, op, value, read)
        return with_out(type(result))(*out) if isinstance(result, ReturnType) else tuple(out)
    if type(out) not in tensor_types:
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type_name(out)}")
    return store_one(out, op, result, read)


def _gives_list(op: Any) -> bool:
    return op.schema is not None and op.schema.results[0].is_list


def _store_list(out: Any, op: Any, result: Any, read: Any) -> None:
    """Store as many results as there are parts; PyTorch gives none of them back."""
    if len(out) != len(result):
        name = "_".join([part for part in (op.name, op.schema.overload, "out") if part])
        raise RuntimeError(f"{name} expected an out= argument of size {len(result)}, got size "
                           f"{len(out)}")
    for one, value in zip(out, result):
        store_one(one, op, value, read)


def _refuse_slices(op: Any, *given: Any) -> None:
    """Inside `vmap`, `out=` would have to hold what each slice gives."""
    if any(hasattr(one, "_level") for value in given
           for one in (value if isinstance(value, (tuple, list)) else (value,))):
        raise RuntimeError(f"Batching rule not implemented for aten::{op.name}.out; the fallback "
                           "path doesn't work on out= or view ops.")


def _refuse_tangents(op: Any, *given: Any) -> None:
    """Forward mode does not reach what is written to `out=`."""
    forward = [level for level in levels.get() if hasattr(level, "tangent")]

    def carries(value: Any) -> bool:
        if type(value) in (tuple, list):
            return any(map(carries, value))
        return type(value) in tensor_types and any(
            level.tangent(value) is not None for level in forward)
    if forward and carries(given):
        raise NotImplementedError(f"Trying to use forward AD with {op.name}_out that does not "
                                  "support it because it is an out= function")


def refuse_out(out: Any, op: Any, read: tuple[Any, ...], error: Exception) -> None:
    """Raise what PyTorch says of `out=` before it finds that a call fails with that `error`."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    declared = op.declaration
    if grad_enabled() and _speaks_first(op) and any_requires_grad((*read, *outs), {}):
        refuse_gradients(op, read)
    if declared.out_first:
        found = dtypes.bool_ if declared.out_first is bool else read[0].dtype
        if outs[0].dtype is not found:
            check_out_type(op, outs[0], found, read)
    if op.kind != "pointwise" or type(out) not in plain_types:
        return
    no_kernel = isinstance(error, NotImplementedError) and str(error)[0] == '"'
    if no_kernel or str(error).startswith("The size of tensor"):
        check_places(out)
        check_overlap(op, out, read)
    if no_kernel:
        check_out_type(op, out, type_of_result(op, read), read)


def _speaks_first(op: Any) -> bool:
    """Is the refusal of gradients the first thing that is said? It is, but where an op is made of
    others, of which one says it."""
    speaker = op.declaration.out_reported_as
    return not op.composite or (
        type(speaker) is str and bool(speaker) and (op.name in speaker or speaker in op.name))


def store_one(out: Tensor, op: Any, result: Tensor, read: Any = ()) -> Tensor:
    if grad_enabled() and (out.requires_grad or result.requires_grad):
        refuse_gradients(op, read)
    if out is result:
        return out
    if type(out) in overrides.own_rules:
        return out.copy_(result)
    if out._device != result._device:
        raise other_device(op, out.device, result.device)
    said = op.declaration.out_type if type(out) in plain_types and op.declaration is not None \
        else None
    if said == FOUND_TYPE or (op.kind == "pointwise" and (said == "" or callable(said))):
        check_places(out)
        check_overlap(op, out, read)
    if op.kind == "pointwise" and out._array.shape != result._array.shape and any(
            one is out for one in read):
        raise written_shape_error(out._array.shape, result._array.shape)
    if result.dtype is not out.dtype:
        check_out_type(op, out, result.dtype, read)
    if out._array.shape != result._array.shape:
        plain = type(out) in plain_types
        if out._array.size and plain:
            check_resized_overlap(op, out, read)
        in_rows = _in_rows(op, out, read)
        resize_output(out, result._array.shape,
                      op.declaration is None or op.declaration.out_resized)
        if out._array.size and plain:       # it may have grown into what is read
            check_resized_overlap(op, out, read, True)
        if out._device is meta:
            out._array = result.to(out.dtype)._array
        elif not in_rows and views.is_dense(result._array):
            out._array = views.laid_out_like(result._array, out._array.reshape(-1))
    elif type(out) in plain_types:
        if not allows_internal_overlap(op):
            check_places(out)
        check_overlap(op, out, read)
    if out._device is not meta:
        if not out._array.flags.writeable:
            own(out._array)
        warn_of_lost_parts(result._array, out._array.dtype)
        out._array[...] = convert(result._array, out._array.dtype)
    count_write(out)
    return out


def _in_rows(op: Any, out: Tensor, read: Any) -> bool:
    """Does `out` get new memory row by row? The results of such ops are copied, where those of
    others are computed in their places."""
    said = False if op.declaration is None else op.declaration.out_rows
    if said == "occupied":
        return out._array.size > 0
    return said(*read) if callable(said) else bool(said)


def warn_of_resizing(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Warn of an `out` with elements that gets another shape."""
    warn_user("An output with one or more elements was resized since it had shape "
              f"{list(before)}, which does not match the required output shape {list(after)}. This "
              "behavior is deprecated, and in a future PyTorch release outputs will not be resized "
              "unless they have zero elements. You can explicitly reuse an out tensor t by "
              "resizing it, inplace, to zero elements with t.resize_(0).")


def resize_output(out: Tensor, shape: tuple[int, ...], said: Any = True) -> None:
    """Give `out` another shape; a warning if it had elements, as torch gives one, unless the op
    says something else or nothing."""
    if out._array.size and said is not True:
        if said:
            warn_user(said(out._array.shape, shape))
    elif out._array.size:
        warn_of_resizing(out._array.shape, shape)
    if out._device is meta:
        out._array = meta_array(shape, out._array.dtype)
    else:
        out._array = resized(out, shape)
