"""What the tools of quantisation ask of configurations, modules, and ranges of numbers."""
from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.ao.quantization.quant_type import QuantType
from flambeau.nn.utils.parametrize import is_parametrized

Pattern = NodePattern = Any
TENSOR_SCHEMES = (flambeau.per_tensor_symmetric, flambeau.per_tensor_affine)
CHANNEL_SCHEMES = (flambeau.per_channel_symmetric, flambeau.per_channel_affine,
                   flambeau.per_channel_affine_float_qparams)
SYMMETRIC_SCHEMES = (flambeau.per_tensor_symmetric, flambeau.per_channel_symmetric)
_INTEGERS = (flambeau.quint8, flambeau.qint8, flambeau.qint32, flambeau.quint4x2, flambeau.uint8,
             flambeau.int8, flambeau.uint16, flambeau.int16, flambeau.int32,
             flambeau.float8_e5m2, flambeau.float8_e4m3fn)
_UNDERLYING = {flambeau.quint8: flambeau.uint8, flambeau.qint8: flambeau.int8,
               flambeau.qint32: flambeau.int32, flambeau.quint4x2: flambeau.uint8,
               flambeau.quint2x4: flambeau.uint8}

DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated and will be removed in 2.10. \nFor migrations of users: \n"
    "1. Eager mode quantization (torch.ao.quantization.quantize, "
    "torch.ao.quantization.quantize_dynamic), please migrate to use torchao eager mode quantize_ "
    "API instead \n2. FX graph mode quantization (torch.ao.quantization.quantize_fx.prepare_fx,"
    "torch.ao.quantization.quantize_fx.convert_fx, please migrate to use torchao pt2e quantization "
    "API instead (prepare_pt2e, convert_pt2e) \n3. pt2e quantization has been migrated to torchao "
    "(https://github.com/pytorch/ao/tree/main/torchao/quantization/pt2e) \n"
    "see https://github.com/pytorch/ao/issues/2259 for more details")


class MatchAllNode:
    """In a pattern of nodes, what stands for any node."""


# ---- ranges -------------------------------------------------------------------------------------

def is_per_tensor(qscheme: Any) -> bool:
    """Has the whole tensor one scale?"""
    return qscheme in TENSOR_SCHEMES


def is_per_channel(qscheme: Any) -> bool:
    """Has each channel a scale of its own?"""
    return qscheme in CHANNEL_SCHEMES


def to_underlying_dtype(qdtype: Any) -> Any:
    """The type of the integers that a quantised type holds; another type itself.

    >>> to_underlying_dtype(torch.quint8), to_underlying_dtype(torch.int8)
    (torch.uint8, torch.int8)
    """
    found = _UNDERLYING.get(qdtype, qdtype)
    assert found in _UNDERLYING.values() or found in _INTEGERS, f"Unsupported dtype: {qdtype}"
    return found


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuse a range of integers that is empty, or has no 0."""
    assert quant_min <= 0 <= quant_max, "Used-specified quantization range must include 0."
    assert quant_min < quant_max, (
        "qmin must be strictly less than qmax for user-specified quantization range.")


RANGES = {
    flambeau.qint8: (-128, 127), flambeau.int8: (-128, 127),
    flambeau.quint8: (0, 255), flambeau.uint8: (0, 255),
    flambeau.int16: (-(2 ** 15), 2 ** 15 - 1), flambeau.uint16: (0, 2 ** 16 - 1),
    flambeau.qint32: (-(2 ** 31), 2 ** 31 - 1), flambeau.int32: (-(2 ** 31), 2 ** 31 - 1),
    flambeau.quint4x2: (0, 15)}


def calculate_qmin_qmax(quant_min: int | None, quant_max: int | None, has_customized_qrange: bool,
                        dtype: Any, reduce_range: bool) -> tuple[int, int]:
    """The range of integers to use: the one that is asked for, or all that the type holds, or one
    bit less where that is 8 bits or was asked for.

    >>> calculate_qmin_qmax(None, None, False, torch.quint8, reduce_range=True)
    (0, 127)
    """
    low, high = RANGES.get(dtype, (0, 15))
    if has_customized_qrange:
        if quant_min is not None and quant_max is not None:
            low, high = quant_min, quant_max
        span = high - low + 1
        limit = 2 ** 32 if dtype in (flambeau.qint32, flambeau.int32) else 256
        assert 0 < span <= limit, (
            "quantization range should be positive and not exceed the maximum bit range "
            f"(={'4294967296' if limit > 256 else '256'}).")
    if reduce_range and (has_customized_qrange or high - low == 255):
        low, high = low // 2, high // 2
    return low, high


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Is there a range, with its lower end below its upper one?

    >>> check_min_max_valid(torch.tensor(-1.0), torch.tensor(2.0))
    True
    """
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default "
                      "values.", stacklevel=2)
        return False
    if min_val.ndim == 0 or max_val.ndim == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default "
                          "values.", stacklevel=2)
            return False
        assert min_val <= max_val, f"min {min_val} should be less than max {max_val}"
    else:
        assert bool((min_val <= max_val).all()), (
            f"min {min_val} should be less than max {max_val}")
    return True


def middle_of(dtype: Any, quant_min: int, quant_max: int, has_customized_qrange: bool) -> int:
    """The zero point of a range that is to be symmetric."""
    if dtype in (flambeau.quint8, flambeau.uint8):
        return (quant_min + quant_max) // 2 if has_customized_qrange else 128
    return 2 ** 15 if dtype is flambeau.uint16 else 0


def scale_and_zero_point(low: Tensor, high: Tensor, quant_min: int, quant_max: int, eps: Any,
                         qscheme: Any, middle: int) -> tuple[Tensor, Tensor]:
    """The scale and the zero point that map a range to the integers from `quant_min` to
    `quant_max`; `middle` is the zero point where the range is to be symmetric."""
    steps = float(quant_max - quant_min)
    if qscheme is flambeau.per_channel_affine_float_qparams:
        scale = (high - low) / steps
        scale = flambeau.where(scale > eps, scale, 1.0)
        return scale, -low / scale
    low, high = low.clamp(max=0), high.clamp(min=0)
    if qscheme in SYMMETRIC_SCHEMES:
        scale = flambeau.maximum(flambeau.maximum(-low, high) / (steps / 2), eps)
        return scale, flambeau.full(scale.shape, middle)
    scale = flambeau.maximum((high - low) / steps, eps)
    zero = quant_min - flambeau.round(low / scale).to(flambeau.int)
    return scale, zero.clamp(quant_min, quant_max)


def determine_qparams(min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: Any,
                      eps: Tensor, has_customized_qrange: bool,
                      qscheme: Any = flambeau.per_tensor_affine) -> tuple[Tensor, Tensor]:
    """The scale (float64) and the zero point (int64) for numbers between `min_val` and `max_val`.

    >>> determine_qparams(torch.tensor([-1.0]), torch.tensor([1.55]), 0, 255, torch.uint8,
    ...                   torch.tensor([1e-6]), False)
    (tensor([0.0100], dtype=torch.float64), tensor([100]))
    """
    if not check_min_max_valid(min_val, max_val):
        return flambeau.tensor([1.0]), flambeau.tensor([0])
    middle = middle_of(dtype, quant_min, quant_max, has_customized_qrange)
    if dtype is flambeau.uint16 and has_customized_qrange:      # observers take that of the type
        middle = (quant_min + quant_max) // 2
    scale, zero = scale_and_zero_point(min_val, max_val, quant_min, quant_max, eps, qscheme,
                                       middle)
    if not scale.ndim:
        scale, zero = scale.reshape(1), zero.reshape(1)
    return scale.to(flambeau.float64), zero.to(
        flambeau.float64 if zero.is_floating_point() else flambeau.int64)


# ---- configurations -----------------------------------------------------------------------------

def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The types of activations and weights, and whether activations are quantised as they come."""
    activation = qconfig.activation()
    return activation.dtype, qconfig.weight().dtype, getattr(activation, "is_dynamic", False)


def activation_dtype(qconfig: Any) -> Any:
    """The type of activations."""
    assert qconfig is not None, "qconfig must be provided to determine activation dtype"
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The type of weights."""
    assert qconfig is not None, "qconfig must be provided to determine weight dtype"
    return qconfig.weight().dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Are activations quantised with scales that were found before?"""
    dynamic = getattr(qconfig.activation(), "is_dynamic", False)
    dtype = activation_dtype(qconfig)
    return (dtype is flambeau.float16 or (dtype in _INTEGERS and dtype is not flambeau.quint4x2)
            ) and not dynamic


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Are activations quantised as they come?"""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Are activations quantised to 8 bits?"""
    return activation_dtype(qconfig) in (flambeau.quint8, flambeau.qint8, flambeau.uint8,
                                         flambeau.int8)


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Are activations quantised to 32 bits?"""
    return activation_dtype(qconfig) in (flambeau.qint32, flambeau.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Are weights quantised, or in half precision?"""
    dtype = weight_dtype(qconfig)
    return dtype is flambeau.float16 or (dtype in _INTEGERS and dtype is not flambeau.qint32)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Are weights quantised to 8 bits, once and for all?"""
    return weight_dtype(qconfig) in (flambeau.quint8, flambeau.qint8, flambeau.uint8,
                                     flambeau.int8)


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Are activations quantised to 8 bits as they come, and weights to signed ones?"""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return (activation in (flambeau.quint8, flambeau.uint8)
            and weight in (flambeau.qint8, flambeau.int8) and dynamic)


def get_quant_type(qconfig: Any) -> QuantType:
    """When activations are quantised."""
    assert qconfig is not None
    activation, weight = qconfig.activation(), qconfig.weight()
    quantized = [*_INTEGERS, flambeau.float16]
    if weight.dtype in quantized:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype in quantized:
            return QuantType.STATIC
        return QuantType.WEIGHT_ONLY
    if weight.dtype is flambeau.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype is flambeau.float16:
            return QuantType.STATIC
    raise Exception(f"Unrecognized dtype combination in get_quant_type: activation("
                    f"{activation.dtype}),weight({weight.dtype})")


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """What an observer says of how to quantise, by name."""
    observer = observer_or_fake_quant
    scheme = getattr(observer, "qscheme", None)
    result: dict[str, Any] = {"qscheme": scheme, "dtype": observer.dtype}
    if scheme in SYMMETRIC_SCHEMES:
        result["qscheme"] = flambeau.per_tensor_affine \
            if scheme is flambeau.per_tensor_symmetric else flambeau.per_channel_affine
    if scheme is not None and is_per_channel(scheme):
        result["axis"] = observer.ch_axis
    if scheme is not None and getattr(observer, "calculate_qparams", None) and observer.dtype in (
            flambeau.quint8, flambeau.qint8, flambeau.quint4x2, flambeau.qint32, flambeau.uint8,
            flambeau.int8, flambeau.int16, flambeau.int32, flambeau.uint16, flambeau.float8_e5m2,
            flambeau.float8_e4m3fn):
        result["scale"], result["zero_point"] = observer.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer, name):
            result[name] = getattr(observer, name)
    return result


def get_swapped_custom_module_class(custom_module: Any, custom_module_class_mapping: Any,
                                    qconfig: Any) -> Any:
    """The class that a user's module becomes, as a mapping says for the kind of quantisation."""
    classes = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    assert type(custom_module) in classes, (
        f"did not find corresponding observed module class for {type(custom_module)} in mapping: "
        f"{classes}")
    return classes[type(custom_module)]


# ---- modules and functions ----------------------------------------------------------------------

def check_node(node: Any, modules: Any) -> tuple[bool, bool, bool]:
    """Is a node of a graph a call of a function, a method, or a module that reads a quantised
    tensor's values as they are?"""
    from flambeau.ao.quantization.fx import kinds
    kind = kinds.kind_of(node, modules)
    return tuple(node.op == op and kind is not None         # type: ignore[return-value]
                 for op in ("call_function", "call_method", "call_module"))


def get_combined_dict(default_dict: dict[Any, Any], additional_dict: dict[Any, Any]
                      ) -> dict[Any, Any]:
    """Both dicts in one; where both have a key, the second's value."""
    return {**default_dict, **additional_dict}


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """`obj.a.b` for "a.b"."""
    return attrgetter(fqn)(obj)


def has_no_children_ignoring_parametrizations(module: nn.Module) -> bool:
    """Has a module no modules in it but its parametrizations?"""
    if is_parametrized(module):
        return set(module._modules) == {"parametrizations"}
    return not module._modules


def get_fqn_to_example_inputs(model: nn.Module, example_inputs: tuple[Any, ...]
                              ) -> dict[str, tuple[Any, ...]]:
    """What each module in a model is called with when the model is called with `example_inputs`.

    >>> model = torch.nn.Sequential(torch.nn.ReLU())
    >>> get_fqn_to_example_inputs(model, (torch.tensor([-1.0]),))["0"]
    (tensor([-1.]),)
    """
    found: dict[str, tuple[Any, ...]] = {}

    def look(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            by_name = list(_normalize_kwargs(module.forward, kwargs).values())
            left_out = _get_num_pos_args(module.forward) - 1 - len(args)    # less `self`
            found[name] = (*args, *by_name[max(0, left_out):])
        return hook

    handles = [module.register_forward_pre_hook(look(name), with_kwargs=True)
               for name, module in model.named_modules()]
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _get_num_pos_args(f: Callable[..., Any]) -> int:
    """The number of arguments that may be passed by position."""
    return len(inspect.getfullargspec(f).args)


def _get_default_kwargs(f: Callable[..., Any]) -> OrderedDict[str, Any]:
    """The defaults of the arguments that have one."""
    return OrderedDict((name, p.default) for name, p in inspect.signature(f).parameters.items()
                       if p.default is not p.empty)


def _normalize_kwargs(func: Callable[..., Any], loc: dict[str, Any]) -> OrderedDict[str, Any]:
    """The arguments with defaults, with the values that `loc` has for them."""
    return OrderedDict((name, loc.get(name, default))
                       for name, default in _get_default_kwargs(func).items())


def _get_signature_locals(f: Callable[..., Any], loc: dict[str, Any]) -> dict[str, Any]:
    """Of a function's local variables, its arguments."""
    return {name: value for name, value in loc.items() if name in inspect.signature(f).parameters}


def _parent_name(target: str) -> tuple[str, str]:
    """The path without its last name, and that.

    >>> _parent_name("encoder.0.weight")
    ('encoder.0', 'weight')
    """
    parent, _, name = target.rpartition(".")
    return parent, name


def _get_path_of_module(root: nn.Module, submodule: nn.Module) -> str | None:
    """The name of a module in another; None if it isn't there."""
    return next((name for name, module in root.named_modules() if module is submodule), None)


def _assert_and_get_unique_device(module: nn.Module) -> Any:
    """The device of all of a module's tensors; None if there is none, or if there are several
    kinds."""
    tensors = [*module.parameters(), *module.buffers()]
    devices = {t.device for t in tensors if t.device.type != "meta"}
    assert len(devices) <= 1, (
        f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}")
    return next(iter(devices), None)


__all__ = [
    "DEPRECATION_WARNING",
    "MatchAllNode",
    "NodePattern",
    "Pattern",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int8_quantized",
    "activation_is_int32_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "check_node",
    "determine_qparams",
    "get_combined_dict",
    "get_fqn_to_example_inputs",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]
