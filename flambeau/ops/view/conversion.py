"""Conversions: `x.to(…)`, `x.float()`, `x.clone()`, `x.contiguous()`, `x.detach()`. They change
where values live and as what type, not what they are."""
from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import warn_of_lost_parts
from flambeau._support.source_locations import counter_of, native
from flambeau.core import devices, dtypes, late_bound, type_info
from flambeau.core.calling import overrides
from flambeau.core.modes import interceptors, is_inference_mode_enabled, levels, shows_ops
from flambeau.core.tensor import Tensor, plain_types
from flambeau.core.tensor import alias as bare
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import layouts as kernels
from flambeau.transforms import meta

# ---- copies --------------------------------------------------------------------------------------


def _cast_vjp(grad: Tensor, dtype: np.dtype) -> Tensor:
    if grad._array.dtype.kind in "cW" and dtype.kind not in "cW":
        grad = late_bound.real_part(grad)
    return grad if grad._array.dtype == dtype else cast(grad, dtype)


@compiled("to_copy")
def _to_copy_kernel(self: np.ndarray, dtype: np.dtype | None, memory_format: Any) -> np.ndarray:
    if dtype is not None:
        warn_of_lost_parts(self, dtype)
    return kernels.to_copy(self, dtype, memory_format)


_FORMAT = "MemoryFormat? memory_format=None"
to_copy = op(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    f"bool? pin_memory=None, bool non_blocking=False, {_FORMAT}) -> Tensor",
    kernel=_to_copy_kernel, unused="layout device pin_memory non_blocking", kind="linear",
    function=False, method=False, shape="self", node="ToCopyBackward0",
    d_self=lambda grad, self_dtype: _cast_vjp(grad, self_dtype),
    batch=lambda size, dims, self, dtype, memory_format: (
        (to_copy.op.call(self, dtype, None), dims[0]) if memory_format is None else
        _clone_batched(dims[0], to_copy.op.call(self, dtype, None), memory_format)),
    doc="The values as another type, in memory of their own.")

clone = op(
    f"clone(Tensor self, *, {_FORMAT}) -> Tensor", kernel=kernels.clone, kind="linear",
    shape="self", d_self=lambda grad: grad, out=False,
    batch=lambda size, dims, self, memory_format: _clone_batched(dims[0], self, memory_format),
    doc="""A copy of `input` that gradients flow through.

    >>> import flambeau
    >>> flambeau.clone(flambeau.ones(2))
    tensor([1., 1.])
    """)


def _clone_batched(dim: int, self: Tensor, memory_format: Any) -> Any:
    if memory_format is None or memory_format is type_info.preserve_format:
        return copy_in(self, memory_format), dim
    front = self.movedim(dim, 0)                        # each slice has a memory of its own then
    if memory_format in type_info.CHANNELS_LAST:
        kernels.check_rank(front._array.ndim - 1, memory_format)
        memory_format = kernels.channels_last_strides(front._array.shape[1:])
    if type(memory_format) is tuple:
        memory_format = (max(prod(front._array.shape[1:]), 1), *memory_format)
    return copy_in(front, memory_format), 0


def cast(input: Tensor, dtype: np.dtype | type[np.generic]) -> Tensor:
    """The values as another type of NumPy's."""
    return to_copy.op.call(input, dtype, None)


def as_floating(input: Tensor) -> Tensor:
    """Integers as numbers of the default floating type."""
    return input if input._array.dtype in dtypes.FLOATING else cast(input, dtypes.default_float())


def copy_in(input: Tensor, memory_format: Any = type_info.contiguous_format) -> Tensor:
    """A copy laid out as a memory format says, or with strides: a tuple, in elements."""
    return clone.op.call(input, memory_format)


# ---- to ------------------------------------------------------------------------------------------


def _in_c(name: str, dtype: dtypes.dtype | None = None) -> Any:
    """What does the common case of a conversion."""
    return None if native is None else lambda: native.make_member(
        name, (to_copy.op.call, dtype and dtype.numpy))


@op("contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor",
    function=False, out=False, in_c=_in_c("contiguous"))
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in memory in that order, else a copy that does."""
    memory_format = memory_format or type_info.contiguous_format
    if self.is_contiguous(memory_format=memory_format):
        return self
    return copy_in(self, memory_format)


def _is_laid_out(tensor: Tensor, memory_format: Any) -> bool:
    """Does `to` leave the strides as they are? It tells channels last from all others only."""
    if memory_format is None or memory_format is type_info.preserve_format:
        return True
    kernels.check_rank(tensor._array.ndim, memory_format)
    return kernels.has_channels_last(tensor._array) is (
        memory_format is not type_info.contiguous_format)


_COPY = f"bool non_blocking=False, bool copy=False, *, {_FORMAT}"


@op(f"to.device(Tensor self, Device? device=None, ScalarType? dtype=None, {_COPY}) -> Tensor",
    f"to.dtype(Tensor self, ScalarType dtype, {_COPY}) -> Tensor",
    f"to.other(Tensor self, Tensor tensor, {_COPY}) -> Tensor",
    function=False, out=False, in_c=_in_c("to"))
def to(self: Tensor, device: Any = None, dtype: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None, tensor: Tensor | None = None) -> Tensor:
    """This tensor with another type or on another device; itself if nothing changes.

    `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; `copy=True` always copies.

    >>> import flambeau
    >>> flambeau.ones(2).to(flambeau.int64)
    tensor([1, 1])
    """
    if tensor is not None:
        device, dtype = tensor._device, tensor.dtype
    wanted = dtypes.as_numpy_dtype(dtype)
    result = self
    converts = wanted is not None and wanted != self._array.dtype
    if converts or copy or not _is_laid_out(self, memory_format):
        result = to_copy.op.call(self, wanted, memory_format)
    device = None if device is None else devices.checked(device)
    if device is not None and device is not result._device and device != result._device:
        if device.type == "meta":
            return meta.to_meta(result)
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return result


def arguments_of_to(self: Tensor, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a call of `to` asks for: `device`, `dtype` and the others, by name."""
    declared: Any = Tensor.to
    overload, values = declared.twin.choose((self, *args), kwargs)
    names = ("self", "device", "dtype", "non_blocking", "copy", "memory_format", "tensor")
    given = dict(zip(names, overload.canonical(values)))
    if given["tensor"] is not None:
        given["device"], given["dtype"] = given["tensor"]._device, given["tensor"].dtype
    if given["device"] is not None:
        given["device"] = devices.checked(given["device"])
    given["dtype"] = dtypes.as_numpy_dtype(given["dtype"])
    return given


def _declare_conversion(name: str, target: dtypes.dtype) -> None:
    member(f"{name}(Tensor self, *, {_FORMAT}) -> Tensor", function=False,
           in_c=_in_c("to_type", target),
           body=lambda self, memory_format: self.to(target, memory_format=memory_format),
           doc=f"This tensor as {target.name}; itself if it is.")


for _name, _target in [*dtypes.ALIASES.items(), ("bool", dtypes.bool_), ("byte", dtypes.uint8),
                       ("char", dtypes.int8), ("bfloat16", dtypes.bfloat16)]:
    _declare_conversion(_name, _target)


@member("type_as(Tensor self, Tensor other) -> Tensor", function=False, in_c=_in_c("type_as"))
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with the type of `other`."""
    return self.to(other.dtype)


# ---- devices -------------------------------------------------------------------------------------


@member(f"cpu(Tensor self, *, {_FORMAT}) -> Tensor", function=False)
def cpu(self: Tensor, memory_format: Any) -> Tensor:
    """This tensor on the CPU; itself if it is there."""
    return self.to("cpu", memory_format=memory_format)


def _declare_to(name: str, **declared: Any) -> Any:
    """Declares the method that moves a tensor to such a device."""
    return member(f"{name}(Tensor self, Device? device=None, bool non_blocking=False, *, "
                  f"{_FORMAT}) -> Tensor", function=False, deprecated=(
                      f"{name}(Tensor self, Device? device=None, bool async=False, *, {_FORMAT}) "
                      "-> Tensor",), **declared)


@_declare_to("cuda")
def cuda(self: Tensor, device: Any, non_blocking: bool, memory_format: Any) -> Tensor:
    """There is no CUDA device in this build: raises."""
    if device is None or isinstance(device, int):
        device = "cuda" if device is None else f"cuda:{device}"
    return self.to(device)


def _without(name: str, error: type[Exception], message: str) -> None:
    def refuse(*_: Any) -> Any:
        raise error(message)
    _declare_to(name, body=refuse, doc=f"There is no {name.upper()} device in this build: raises.")


for _name in ("xpu", "mtia"):
    _without(_name, AssertionError, f"Torch not compiled with {_name.upper()} enabled")
_without("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")

# ---- outside of the graph ------------------------------------------------------------------------


detached = op(
    "detach(Tensor self) -> Tensor", kernel=lambda self: self[...], function=False, method=False,
    shares=True, differentiable=False, batch=lambda size, dims, self: (detached(self), dims[0]))


@member("detach(Tensor self) -> Tensor",
        in_c=native and partial(native.make_member, "detach", None))
def detach(self: Tensor) -> Tensor:
    """The same values on the same memory, outside the graph; writes to either are counted."""
    if type(self) not in plain_types or interceptors:
        if overrides.needs_override((self,)) and not (
                shows_ops() and not overrides.overriding_args((self,))):
            return overrides.handle_torch_function(Tensor.detach, (self,), self)
        if levels.get():
            return detached(self)
    counter = counter_of(self)
    if self._device is devices.meta:
        result = bare(self._array, meta.MetaTensor)
        if self._conjugated or self._negated:
            result._conjugated, result._negated = self._conjugated, self._negated
    else:
        result = bare(self._array, Tensor)
    result._counter = counter
    return result


@member("detach_(Tensor self) -> Tensor")
def detach_(self: Tensor) -> Tensor:
    """Take this tensor out of the graph, in place. A view cannot be: its base keeps it in."""
    if is_inference_mode_enabled():
        return self                             # which records nothing
    if self._base is not None and self._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and "
                           "gradient_as_bucket_view is set as True, gradients are views of DDP "
                           "buckets, and hence detach_() cannot be called on these gradients. "
                           "To fix this error, please refer to the Optimizer.zero_grad() function "
                           "in torch/optim/optimizer.py as the solution.")
    if self._base is None:
        if self._edge is not None and not self.is_leaf:
            # a new counter, ahead of the old one: nodes that saved this tensor will notice
            self._counter, self._detached = [counter_of(self)[0] + 1, None], True
        self._edge = None
    if self._tangents is not None:
        self._tangents = dict.fromkeys(self._tangents)
    return self


__all__ = ["arguments_of_to", "cast", "clone", "contiguous", "copy_in", "detach", "to"]
