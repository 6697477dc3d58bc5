"""Copies, casts, aliases: ops that change where values live, not what they are."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau import type_info
from flambeau._places import bump, counter_of
from flambeau.core import devices, dtypes, overrides, views
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.modes import grad_enabled, interceptors, levels
from flambeau.core.op import checked_arguments, composite, linear, primitive, public
from flambeau.core.promotion import convert
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor, basis, plain, tensor_types, wrap
from flambeau.core.tensor import alias as bare
from flambeau.kernels import views as kernels
from flambeau.kernels.layouts import channels_last, channels_last_strides, has_channels_last
from flambeau.ops.overlap import is_dense, share_memory
from flambeau.transforms import meta

# ---- casts ---------------------------------------------------------------------------------------


def _converted(self: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Its elements lie as those of a copy of `self` do."""
    return convert(kernels.copy(self) if kernels.has_one_place(self) else self, dtype)


@linear(_converted, method=False, namespace=None, shape="self", params=("dtype",),
        node_name="ToCopyBackward0", d_self=lambda grad, self_dtype: _cast_back(grad, self_dtype),
        batch=lambda size, dims, self, dtype: (cast(self, dtype), dims[0]))
def cast(input: Tensor, dtype: np.dtype) -> Any:
    """The values as another type."""
    return input, dtype


def _cast_back(grad: Tensor, dtype: np.dtype) -> Tensor:
    if grad._array.dtype.kind in "cW" and dtype.kind not in "cW":
        grad = basis.real(grad)
    return cast(grad, dtype)


@linear(lambda self, order: _copied(self, order), method=False, namespace=None, shape="self",
        node_name="CloneBackward0", d_self=lambda grad: grad,
        batch=lambda size, dims, self, order: _clone_batched(dims[0], self, order))
def _clone(input: Tensor, order: Any) -> Any:
    return input, order


def _clone_batched(dim: int, self: Tensor, order: Any) -> Any:
    if order == "K":
        return _clone(self, order), dim
    front = basis.movedim(self, dim, 0)                 # each slice has a memory of its own then
    if order == "channels_last":
        order = channels_last_strides(front._array.shape[1:])
    if order != "C":
        order = (max(prod(front._array.shape[1:]), 1), *order)
    return _clone(front, order), 0


def _copied(x: np.ndarray, order: Any) -> np.ndarray:
    """A copy: "C" row-major, "K" laid out like `x`, "channels_last", or with the
    given strides (in elements)."""
    if type(order) is tuple:
        length = 1 + sum((n - 1) * s for n, s in zip(x.shape, order)) if x.size else 0
        r = np.ndarray(x.shape, x.dtype, np.zeros(length, x.dtype), 0,
                       tuple([s * x.itemsize for s in order]))
        r[...] = x
        return r
    if order == "K":
        return kernels.copy(x)
    if order == "channels_last":
        channels_last_strides(x.shape)
        return channels_last(x)
    return kernels.contiguous(x)


def _order(memory_format: Any) -> str:
    if memory_format is None or memory_format is type_info.preserve_format:
        return "K"
    return "C" if memory_format is type_info.contiguous_format else "channels_last"


@composite(method=True)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy of `input` that gradients flow through.

    >>> import flambeau
    >>> flambeau.clone(flambeau.ones(2))
    tensor([1., 1.])
    """
    return _clone(input, _order(memory_format))


@composite(namespace=None, method=True)
def contiguous(input: Tensor, memory_format: Any = type_info.contiguous_format) -> Tensor:
    """`input` itself if its elements lie in memory in that order, else a copy that does."""
    if input.is_contiguous(memory_format=memory_format):
        return input
    return _clone(input, _order(memory_format))


def _detach_kernel(self: np.ndarray) -> np.ndarray:
    return self[...]


@primitive(_detach_kernel, method=False, namespace=None, d_self=None, shares=True,
        batch=lambda size, dims, self: (detach(self), dims[0]))
def detach(input: Tensor) -> Any:
    return (input,)


def _detach(input: Tensor) -> Tensor:
    """The same values on the same memory, outside the graph; writes to either are counted."""
    if type(input) not in plain or interceptors:
        if overrides.wanted((input,)):
            return overrides.handle_torch_function(Tensor.detach, (input,), input)
        if levels.get():
            return detach(input)
    counter = counter_of(input)
    result = bare(input._array, meta.MetaTensor if input._device is devices.meta else Tensor)
    result._counter = counter
    return result


Tensor.detach = public["torch"]["detach"] = _detach
detach.op.function = detach


def detach_(self: Tensor) -> Tensor:
    """Take this tensor out of the graph, in place. A view cannot be: its base keeps it in."""
    if self._base is not None and self._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and "
                           "gradient_as_bucket_view is set as True, gradients are views of DDP "
                           "buckets, and hence detach_() cannot be called on these gradients.")
    if self._base is None:
        if self._edge is not None and not self.is_leaf:
            # a new counter, ahead of the old one: nodes that saved this tensor will notice
            self._counter, self._detached = [self._version + 1, None], True
        self._edge = None
    if self._tangents is not None:
        self._tangents = dict.fromkeys(self._tangents)
    return self


Tensor.detach_ = public["torch"]["detach_"] = detach_


@linear(lambda self: self[...], view=True, d_self=lambda grad: grad, namespace="torch",
        method=False, batch=lambda size, dims, self: (alias(self), dims[0]))
def alias(input: Tensor) -> Any:
    """The same values on the same memory, as a view."""
    return (input,)


@linear(lambda self: self, d_self=lambda grad: grad, namespace=None, method=False,
        node_name="AliasBackward0", batch=lambda size, dims, self: (graph_alias(self), dims[0]))
def graph_alias(input: Tensor) -> Any:
    """The same values as a point of its own in the graph."""
    return (input,)


def _laid_out(tensor: Tensor, memory_format: Any) -> bool:
    """Does `to` leave the strides as they are? It tells channels last from all others only."""
    if memory_format is None or memory_format is type_info.preserve_format:
        return True
    rank = {type_info.channels_last: 4, type_info.channels_last_3d: 5}.get(memory_format)
    if rank not in (None, tensor._array.ndim):
        raise RuntimeError(f"required rank {rank} tensor to use {str(memory_format)[6:]} format")
    return has_channels_last(tensor._array) is (
        memory_format is not type_info.contiguous_format)


# ---- to ------------------------------------------------------------------------------------------

def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor with another type or on another device; itself if nothing changes.

    `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; `copy=True` always copies.

    >>> import flambeau
    >>> flambeau.ones(2).to(flambeau.int64)
    tensor([1, 1])
    """
    if overrides.wanted((self, *args)):
        return overrides.handle_torch_function(Tensor.to, (self, *args), self, *args, **kwargs)
    device, dtype, copy, memory_format = _parse_to(*args, **kwargs)
    result = self
    if dtype is not None and dtype != self._array.dtype:
        result = cast(result, dtype)
        if memory_format not in (None, type_info.preserve_format):
            result = contiguous(result, memory_format=memory_format)
    elif copy or not _laid_out(self, memory_format):
        result = clone(result, memory_format=memory_format)
    if device is not None and device is not result._device and device != result._device:
        if device.type == "meta":
            return meta.to_meta(result)
        raise NotImplementedError("Cannot copy out of meta tensor; no data! Please use "
                                  "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when "
                                  "moving module from meta to a different device.")
    return result


def _parse_to(*args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False,
              copy: bool = False, memory_format: Any = None, other: Any = None) -> Any:
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], (str, devices.device, int)) and not isinstance(rest[0], bool):
        device = rest.pop(0)
        if rest and isinstance(rest[0], dtypes.dtype):
            dtype = rest.pop(0)
    elif rest and (isinstance(rest[0], dtypes.dtype) or rest[0] in (float, int, bool, complex)):
        dtype = rest.pop(0)
    elif rest and rest[0] is None:
        rest.pop(0)
        if rest and isinstance(rest[0], dtypes.dtype):
            dtype = rest.pop(0)
    elif rest and not isinstance(rest[0], bool):
        raise TypeError(f"to() received an invalid combination of arguments - got "
                        f"({type(rest[0]).__name__}): expected a dtype, a device or a Tensor")
    for value, name in zip(rest, ("non_blocking", "copy")):
        if name == "copy":
            copy = value
    if other is not None:
        device, dtype = other._device, other.dtype
    return (None if device is None else devices.checked(device),
            as_numpy_dtype(dtype), copy, memory_format)


Tensor.to = to = checked_arguments(to)


def _typed(name: str, target: dtypes.dtype) -> Any:
    def method(self: Tensor, *, memory_format: Any = None) -> Tensor:
        if interceptors or type(self) not in plain or memory_format is not None:
            return self.to(target) if memory_format is None else self.to(
                target, memory_format=memory_format)
        return self if self._array.dtype == target.numpy else cast(self, target.numpy)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"This tensor as {target.name}; itself if it is."
    return method


for _name, _target in [*dtypes.ALIASES.items(), ("bool", dtypes.bool_), ("byte", dtypes.uint8),
                       ("char", dtypes.int8), ("bfloat16", dtypes.bfloat16)]:
    setattr(Tensor, _name, checked_arguments(_typed(_name, _target)))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with the type of `other`."""
    return self.to(other.dtype)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor on the CPU; itself if it is there."""
    return self.to("cpu")


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False,
         memory_format: Any = None) -> Tensor:
    """There is no CUDA device in this build: raises."""
    if device is None or isinstance(device, int):
        device = "cuda" if device is None else f"cuda:{device}"
    return self.to(device)


def _without(name: str, error: type[Exception], message: str) -> None:
    def method(self: Tensor, device: Any = None, non_blocking: bool = False,
               memory_format: Any = None) -> Tensor:
        raise error(message)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"There is no {name.upper()} device in this build: raises."
    setattr(Tensor, name, checked_arguments(method))


for _name in ("xpu", "mtia"):
    _without(_name, AssertionError, f"Torch not compiled with {_name.upper()} enabled")
_without("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")
Tensor.type_as, Tensor.cpu, Tensor.cuda = map(checked_arguments, (type_as, cpu, cuda))

# ---- in-place copy -------------------------------------------------------------------------------


def _copied_over(self: np.ndarray, src: np.ndarray) -> np.ndarray:
    result = np.empty_like(self)
    kernels.copy_into(result, convert(src, self.dtype))
    return result


@primitive(_copied_over, tensors=("self", "src"), d_self=0, d_src=lambda grad: grad,
           kind="linear", namespace=None, method=False, inplace=True, node_name="CopyBackwards",
           batch=lambda size, dims, self, src: _copy_batched(dims, self, src))
def copy(input: Tensor, src: Any, non_blocking: bool = False) -> Any:
    """`src` in the shape and type of `input`."""
    if isinstance(src, (int, float, complex)):
        src = wrap(np.asarray(src))
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not "
                        f"{type(src).__name__}")
    from flambeau.core.shapes import is_expandable_to
    if not is_expandable_to(src._array.shape, input._array.shape):
        a, b = input._array.shape, src._array.shape
        raise RuntimeError(f"output with shape {list(a)} doesn't match the broadcast shape "
                           f"{list(b)}" if len(b) > len(a) else _copy_message(a, b))
    return input, src


copy.op.Backward.name = lambda self: "torch::autograd::CopyBackwards"


def _copy_message(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    for i in range(1, len(b) + 1):
        if b[-i] not in (1, a[-i]):
            return (f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at "
                    f"non-singleton dimension {len(a) - i}")
    return f"shape {list(b)} cannot be copied into {list(a)}"


def _copy_batched(dims: Any, self: Tensor, src: Tensor) -> Any:
    a = self if dims[0] is None else basis.movedim(self, dims[0], 0)
    b = src if dims[1] is None else basis.movedim(src, dims[1], 0)
    if dims[0] is None:
        a = basis.expand(a, (b._array.shape[0], *a._array.shape))
    if dims[1] is not None and b._array.ndim < a._array.ndim:
        shape = b._array.shape
        b = basis.reshape(b, (shape[0], *(1,) * (a._array.ndim - b._array.ndim), *shape[1:]))
    return copy(a, b), 0


_copy_slowly = Tensor.copy_


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the values of `src`, broadcast and cast, into this tensor; returns the tensor."""
    if interceptors or type(self) not in plain or type(src) not in plain or self._inference \
            or (grad_enabled() and (self._edge is not None or src._edge is not None)):
        return _copy_slowly(self, src)
    target, source = self._array, src._array
    if share_memory(target, source) or source.ndim > target.ndim:
        return _copy_slowly(self, src)
    try:
        kernels.copy_into(target, source if source.dtype is target.dtype
                          else convert(source, target.dtype))
    except ValueError:
        raise RuntimeError(_copy_message(target.shape, source.shape)) from None
    bump(self)
    return self


copy_.op = _copy_slowly.op
Tensor.copy_ = copy_ = checked_arguments(copy_)
copy_.op.published = Tensor.copy_


@composite(namespace=None, method=False)
def with_strides(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The values of `input` laid out with other, dense strides."""
    shape = input._array.shape
    if strides == contiguous_strides(shape):
        return contiguous(input)
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], i))
    back = [0] * len(order)
    for position, axis in enumerate(order):
        back[axis] = position
    return basis.permute(contiguous(basis.permute(input, order)), back)


def laid_out(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of `input` with these strides, also where they leave gaps."""
    if type(input) not in plain:
        return clone(with_strides(input, strides))
    return _clone(input, "C" if strides == contiguous_strides(input._array.shape) else strides)


# ---- layouts -------------------------------------------------------------------------------------


def copy_like(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy of `grad` outside the graph, laid out as `leaf` is if that is dense."""
    if type(grad) not in plain:
        return basis.detach(basis.clone(grad))
    source, own = grad._array, leaf._array
    target = np.empty_like(own, dtype=source.dtype) if is_dense(own) \
        else np.empty(own.shape, source.dtype)
    target[...] = source
    return wrap(target)


basis.copy_like = copy_like
basis.copy = copy
basis.cast, basis.clone, basis.detach, basis.alias = cast, clone, _detach, alias
basis.graph_alias, basis.contiguous, basis.with_strides = graph_alias, contiguous, with_strides
basis.laid_out = laid_out
basis.contiguous_strides = contiguous_strides
__all__ = [
    "alias",
    "cast",
    "clone",
    "contiguous",
    "copy",
    "copy_",
    "detach",
    "tensor_types",
    "to",
    "views",
]
