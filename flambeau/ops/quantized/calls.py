"""How public calls with quantised arguments are answered: on the integers, on the numbers that they
stand for, or not at all."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flambeau._support.source_locations import bump, counter_of
from flambeau.core import devices, dtypes
from flambeau.core.calling import overrides
from flambeau.core.op import public
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.backend_errors import check_fit, has_no_kernel_of, without_rule
from flambeau.ops.coercion import each_result
from flambeau.ops.quantized.tensors import (
    QuantizedTensor,
    Scheme,
    dequantize,
    expect_float,
    limits,
    make_quantized,
    quantize_per_tensor,
    scheme_of,
)

# The result has the input's elements, at other places; several take the scheme of the first.
MOVE = frozenset("""alias as_strided broadcast_to chunk clone contiguous cpu detach detach_
    diagonal expand expand_as flatten flip getitem index index_select movedim
    moveaxis narrow permute ravel repeat reshape reshape_as roll rot90 select
    slice split split_with_sizes squeeze squeeze_ swapaxes swapdims t take
    tensor_split tile transpose unbind unflatten unfold unsqueeze view view_as cat
    concat concatenate stack hstack vstack dstack row_stack column_stack max min amax amin sort
    topk msort kthvalue median
    max_pool2d max_pool3d adaptive_max_pool2d channel_shuffle
    pixel_shuffle T mT H mH""".split())
_ORDERED = frozenset("""as_strided max min amax amin sort topk msort kthvalue median
    max_pool2d max_pool3d adaptive_max_pool2d cat concat concatenate stack
    hstack vstack dstack row_stack column_stack""".split())
# Computed with the numbers, then quantised as the input is.
AGAIN = frozenset("""relu relu6 hardtanh clamp clip mean std threshold leaky_relu elu celu prelu
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    interpolate upsample upsample_nearest upsample_bilinear hardswish masked_fill index_put fill
    pad constant_pad_nd ones_like fill zero""".split())
# Likewise; these have a range of their own.
_RANGES = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (1 / 128, 128)}
# Computed in vector units.
_FUSED = frozenset("""hardtanh threshold leaky_relu elu celu hardswish sigmoid hardsigmoid
    tanh""".split())
_CHANNELS_LACK = "%s operator for quantized tensors only works for per tensor quantized tensors. " \
    "Please open an issue on https://github.com/pytorch/pytorch/issues if you need per channel " \
    "quantized tensor support."
_ONE_SCALE = {"max": _CHANNELS_LACK % "Max", "min": _CHANNELS_LACK % "Min",
              "topk": "Top-K is only supported on per-tensor quantization",
              "sort": "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got "
              "false.  (Could this error message be improved?  If so, please report an enhancement "
              "request to PyTorch.)"}
_ONE_SCALE |= dict.fromkeys(("cat", "stack", "concat", "concatenate"),
                            "Only per-tensor quantization is supported in 'cat'!")
_FACTS = frozenset("""is_inference is_conj is_neg is_distributed is_same_size is_floating_point
    is_complex get_device""".split())
COMPARE = frozenset("eq ne lt le gt ge".split())


def _map_quantized(args: Any, change: Callable[[QuantizedTensor], Any]) -> Any:
    """Arguments with each quantised tensor changed to a plain one."""
    if type(args) is QuantizedTensor:
        return change(args)
    if type(args) in (list, tuple):
        return type(args)([_map_quantized(a, change) for a in args])
    return {k: _map_quantized(v, change) for k, v in args.items()} if type(args) is dict else args


def _quantized_in(args: Any) -> list[QuantizedTensor]:
    found: list[QuantizedTensor] = []
    _map_quantized(args, found.append)
    return found


def _integers(tensor: QuantizedTensor) -> Tensor:
    result = wrap(tensor._array)
    result._counter = counter_of(tensor)
    return result


def _channel_numbers(tensor: QuantizedTensor) -> Tensor:
    """For each element the number of its channel."""
    axis = tensor._scheme.axis
    shape = (-1,) + (1,) * (tensor._array.ndim - 1 - axis)
    return wrap(np.broadcast_to(np.arange(tensor._array.shape[axis]).reshape(shape),
                                tensor._array.shape))


def _moved_scheme(scheme: Scheme, channels: np.ndarray) -> Scheme:
    """The scheme of a tensor whose elements have come from these channels."""
    if not channels.size or (channels == channels.flat[0]).all():
        at = channels.flat[0] if channels.size else 0
        return scheme._replace(scale=float(scheme.scale[at]), axis=None,
                               zero_point=scheme.zero_point[at].item())
    for axis in range(channels.ndim):
        along = np.moveaxis(channels, axis, 0).reshape(channels.shape[axis], -1)
        if (along == along[:, :1]).all():
            return scheme._replace(scale=scheme.scale[along[:, 0]], axis=axis,
                                   zero_point=scheme.zero_point[along[:, 0]])
    raise RuntimeError("the result would have several scales along one dimension")


def _integers_on(scheme: Scheme, tensor: QuantizedTensor) -> Tensor:
    """Those that stand for the tensor's numbers with the scale of the first of several."""
    if tensor._scheme.same(scheme):
        return _integers(tensor)
    return _integers(quantize_per_tensor(dequantize(tensor), scheme.scale, scheme.zero_point,
                                         tensor.dtype))


def _rearrange(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    sources = _quantized_in((args, kwargs))
    scheme = sources[0]._scheme
    integers = _integers
    if any(not s._scheme.same(scheme) for s in sources):
        if any(s.dtype is not sources[0].dtype for s in sources):
            raise RuntimeError("All dtypes must be the same.")
        if any(s._scheme.axis is not None for s in sources):
            raise NotImplementedError(f"{name} of tensors that were quantised in different ways")
        integers = partial(_integers_on, scheme)
    moved = function(*_map_quantized(args, integers), **_map_quantized(kwargs, integers))
    held = sources[0]._array.dtype
    if scheme.axis is None:
        return each_result(moved, lambda r: make_like(r, scheme) if r._array.dtype == held else r)
    if name in _ORDERED:
        raise RuntimeError(_ONE_SCALE.get(name, f"{name} is only supported on per-tensor "
                                          "quantization"))
    if name in ("clone", "contiguous", "detach", "cpu"):
        return make_like(moved, scheme)
    channels: list[np.ndarray] = []
    each_result(function(*_map_quantized(args, _channel_numbers),
                         **_map_quantized(kwargs, _channel_numbers)),
             lambda r: channels.append(r._array))
    rest = iter(channels)
    return each_result(moved, lambda r: make_like(r, _moved_scheme(scheme, next(rest))))


def make_like(plain: Tensor, scheme: Scheme) -> QuantizedTensor:
    result = make_quantized(plain._array, scheme)
    result._counter = plain._counter
    return result


def _compute_on_numbers(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    scheme = _quantized_in((args, kwargs))[0]._scheme
    if scheme.axis is not None and not name.startswith("fill"):
        scheme_of(_quantized_in((args, kwargs))[0], name, False)
    if name in _RANGES:
        scale, zero = _RANGES[name]
        scheme = scheme._replace(scale=scale, zero_point=zero + limits(scheme.dtype)[0])
    fused = name in _FUSED
    plain = (lambda q: wrap(q._scheme.dequantize_fused(q._array))) if fused else dequantize
    computed = function(*_map_quantized(args, plain), **_map_quantized(kwargs, plain))
    return each_result(computed, lambda r: make_quantized(scheme.quantize(r._array, fused), scheme))


def _equal(a: QuantizedTensor, b: QuantizedTensor) -> bool:
    if type(a) is not type(b):
        raise RuntimeError("Cannot compare a quantised tensor with another sort")
    return a._scheme.same(b._scheme) and np.array_equal(a._array, b._array)


def _copy(target: Tensor, source: Tensor) -> Tensor:
    if type(target) is not QuantizedTensor:
        raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed, "
                           "please use dequantize to get a float Tensor from a quantized Tensor")
    if type(source) is QuantizedTensor:
        if source._scheme.name is not target._scheme.name:
            raise RuntimeError("Quantized Copy only works with same quantizer")
        target._array[...] = source._array
        target._scheme = source._scheme._replace(dtype=target._scheme.dtype)
    else:
        expect_float(source, "copy_")
        target._array[...] = target._scheme.quantize(
            np.broadcast_to(source._array, target._array.shape))
    bump(target)
    return target


def _to(tensor: Any, *args: Any, **kwargs: Any) -> Tensor:
    if any(a is not tensor.dtype and isinstance(a, dtypes.dtype)
           for a in (*args, *kwargs.values())):
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like "
                           "torch.quint8")
    for device in (a for a in (*args, *kwargs.values()) if isinstance(a, str | devices.device)):
        if (device := devices.device(device)).type != "cpu":
            raise NotImplementedError(f"a quantised tensor on device {device}")
    if kwargs.get("memory_format") is None:
        return tensor
    return make_like(_integers(tensor).to(memory_format=kwargs["memory_format"]), tensor._scheme)


def _empty_like(tensor: QuantizedTensor, *args: Any, **kwargs: Any) -> Tensor:
    return make_quantized(np.empty_like(tensor._array), tensor._scheme)


def _declare_max_pool(n: int) -> Callable[..., Tensor]:
    """`max_pool{n}d` of the integers, for which there are no windows, as numbers."""
    def pool(tensor: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        held = tensor._array.dtype
        wide = wrap(tensor._array.astype(np.float64 if held.itemsize > 2 else np.float32))
        kwargs.pop("return_indices", None)
        if args[1:2] == (None,) or ("stride" in kwargs and kwargs["stride"] is None):
            args, kwargs["stride"] = args[:1] + args[2:], []
        found = public["torch"][f"max_pool{n}d"](wide, *args, **kwargs)
        return make_quantized(found._array.astype(held), tensor._scheme)
    return pool


def _batch_norm(input: QuantizedTensor, weight: Tensor | None, bias: Tensor | None, *rest: Any
                ) -> Tensor:
    from flambeau._ops import ops
    for name, given in (("Weight", weight), ("Bias", bias)):
        if given is None:
            raise RuntimeError(f"{name} must be provided")
        if given._array.size != input._array.shape[1]:
            raise RuntimeError(f"Expect {name.lower()} size to match C")
    return ops.quantized.batch_norm(input, weight, bias, *rest)


LIBRARY: dict[str, Any] = {             # functions of quantised tensors alone
    "quantized_batch_norm": _batch_norm,
    **{f"quantized_max_pool{n}d": _declare_max_pool(n) for n in (1, 2, 3)}}
_OTHERS: dict[str, Any] = {
    "max_pool1d": _declare_max_pool(1),
    "equal": _equal, "copy_": _copy, "to": _to, "empty_like": _empty_like,
    "is_floating_point": lambda t: False, "is_complex": lambda t: False,
    "numel": lambda t: t._array.size, "is_same_size": lambda a, b: a.shape == b.shape,
    "result_type": lambda a, b: a.dtype}


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with a quantised argument."""
    fit, called = check_fit(function, args, kwargs), function
    op = getattr(function, "op", None)
    name = (op.name if op is not None else function.__name__).strip("_")
    inplace = op is not None and op.inplace
    if fit is not None and has_no_kernel_of(fit, "QuantizedCPU"):
        return without_rule(called, args, kwargs, "QuantizedCPU", "Strided", fit)
    if function is Tensor.fill_:                # a method that is no op
        return _copy(args[0], _compute_on_numbers(name, public["torch"]["fill"], args, kwargs))
    if inplace and name not in ("copy", "squeeze", "detach", "unsqueeze"):
        function, name = op.functional.function, op.functional.name
    elif inplace:
        name += "_"
    if name in _OTHERS:
        return _OTHERS[name](*args, **kwargs)
    if name in _FACTS:
        return op.call(*args)
    if name in COMPARE:
        return function(*_map_quantized(args, dequantize), **kwargs)
    if name in MOVE:
        return _rearrange(name, function, args, kwargs)
    if name not in AGAIN and name not in _RANGES:
        return without_rule(called, args, kwargs, "QuantizedCPU", "Strided", fit)
    result = _compute_on_numbers(name, function, args, kwargs)
    return _copy(args[0], result) if inplace else result


overrides.own_rules[QuantizedTensor] = dispatch
