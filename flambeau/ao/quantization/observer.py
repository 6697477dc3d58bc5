"""Observers: modules that pass tensors on and learn from them how to quantise such.

An observer's `calculate_qparams` gives the scale and the zero point that map the range it has seen,
widened to hold 0, to the integers of its dtype.
"""
from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from typing import Any

import flambeau
from flambeau import Tensor, nn, qint8, quint8
from flambeau._support.own_methods import adopt, copy_inherited, define_in_subclasses
from flambeau.ao.quantization.granularity import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PartialClass,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from flambeau.ao.quantization.utils import (
    CHANNEL_SCHEMES,
    RANGES,
    TENSOR_SCHEMES,
    calculate_qmin_qmax,
    middle_of,
    scale_and_zero_point,
)

_EPS = float(flambeau.finfo(flambeau.float32).eps)


def make_room(module: Any, names: tuple[str, ...], state_dict: Any, prefix: str) -> None:
    """Buffers of as many channels as the state that is to be loaded has."""
    for name in names:
        saved = state_dict.get(prefix + name)
        if saved is not None and saved.shape != getattr(module, name).shape:
            setattr(module, name, flambeau.empty_like(saved))


class _Configurable(nn.Module):
    @classmethod
    def with_args(cls, **kwargs: Any) -> PartialClass:
        """This class with some of its arguments: what a `QConfig` takes.

        >>> from flambeau.ao.quantization import MinMaxObserver
        >>> MinMaxObserver.with_args(dtype=flambeau.qint8)().dtype
        torch.qint8
        """
        return PartialClass(functools.partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> PartialClass:
        """This class with arguments that are asked for, by calls, whenever one is made."""
        return PartialClass(functools.partial(cls)).with_callable_args(**kwargs)


# what observers of ranges take, as PyTorch lists it
_DTYPES = (flambeau.qint8, quint8, flambeau.quint4x2, flambeau.qint32, flambeau.int8,
           flambeau.uint8, flambeau.int16, flambeau.int32, flambeau.float8_e5m2,
           flambeau.float8_e4m3fn, flambeau.uint16)


class ObserverBase(_Configurable):
    """What all observers are: `forward` looks at a tensor and gives it back."""

    def __init__(self, dtype: Any, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams")


@define_in_subclasses("calculate_qparams")
class _Blind(ObserverBase):
    """An observer that learns nothing."""

    def calculate_qparams(self) -> Any:
        """An error: nothing is known."""
        raise Exception(
            f"calculate_qparams should not be called for {type(self).__name__}")


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of a range: what turns it into a scale and a zero point."""

    eps: Tensor
    _version = 3
    _schemes: tuple[Any, ...] = (*TENSOR_SCHEMES, *CHANNEL_SCHEMES)
    _schemes_as_text = ", ".join(map(str, _schemes))

    def __init__(self, dtype: Any = quint8, qscheme: Any = flambeau.per_tensor_affine,
                 reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: Any = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        super().__init__(dtype, is_dynamic, **kwargs)
        if qscheme not in self._schemes:
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only support "
                                      + self._schemes_as_text)
        if dtype not in RANGES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        if reduce_range:
            warnings.warn("Please use quant_min and quant_max to specify the range for observers. "
                          + 20 * " " + "reduce_range will be deprecated in a future release of "
                          "PyTorch.", stacklevel=2)
        self.register_buffer("eps", flambeau.tensor([eps]))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not quant_min <= 0 <= quant_max:
                raise AssertionError("Used-specified quantization range must include 0.")
            if not quant_min < quant_max:
                raise AssertionError("qmin must be less than qmax for user-specified quantization "
                                     "range.")
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range)

    def _calculate_qparams(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        if not low.numel() or bool((low == float("inf")).all() & (high == -float("inf")).all()):
            warnings.warn("must run observer before calling calculate_qparams. Returning default "
                          "values.", UserWarning, stacklevel=3)
            return flambeau.tensor([1.0]), flambeau.tensor([0])
        middle = middle_of(self.dtype, self.quant_min, self.quant_max, self.has_customized_qrange)
        return scale_and_zero_point(low, high, self.quant_min, self.quant_max, self.eps,
                                    self.qscheme, middle)


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number seen.

    >>> from flambeau.ao.quantization import MinMaxObserver
    >>> observer = MinMaxObserver()
    >>> _ = observer(flambeau.tensor([-1.0, 1.55]))
    >>> observer.calculate_qparams()
    (tensor([0.0100]), tensor([100], dtype=torch.int32))
    """

    min_val: Tensor
    max_val: Tensor
    _schemes: tuple[Any, ...] = TENSOR_SCHEMES
    _schemes_as_text = (f"torch.per_tensor_symmetric{' ' * 21}and torch.per_tensor_affine.")
    _start = (float("inf"), -float("inf"))
    averaging_constant: float | None = None

    def __init__(self, dtype: Any = quint8, qscheme: Any = flambeau.per_tensor_affine,
                 reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: Any = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.reset_min_max_vals()

    def reset_min_max_vals(self) -> None:
        """Forget what has been seen."""
        low, high = self._start
        self.register_buffer("min_val", flambeau.tensor(low))
        self.register_buffer("max_val", flambeau.tensor(high))

    def _range_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amin(), x.amax()

    def forward(self, x_orig: Tensor) -> Tensor:
        if not x_orig.numel():
            return x_orig
        low, high = self._range_of(x_orig.detach().to(self.min_val.dtype))
        if self.min_val.numel() and bool((self.min_val != float("inf")).all()):
            if self.averaging_constant is None:
                low = flambeau.minimum(low, self.min_val)
                high = flambeau.maximum(high, self.max_val)
            else:
                low = self.min_val + self.averaging_constant * (low - self.min_val)
                high = self.max_val + self.averaging_constant * (high - self.max_val)
        self.min_val, self.max_val = low, high
        return x_orig

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self._calculate_qparams(self.min_val.reshape(-1), self.max_val.reshape(-1))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        make_room(self, ("min_val", "max_val"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        low, high = (v.item() if v.dim() == 0 else v for v in (self.min_val, self.max_val))
        return f"min_val={low}, max_val={high}"


@copy_inherited("forward", "calculate_qparams", "reset_min_max_vals", "extra_repr")
class PerChannelMinMaxObserver(MinMaxObserver):
    """The least and the greatest number seen at each index of dimension `ch_axis`."""

    _schemes = CHANNEL_SCHEMES
    _schemes_as_text = (f"{' ' * 20}torch.per_channel_symmetric, torch.per_channel_affine and "
                        "torch.per_channel_affine_float_qparams.")
    _start: Any = ([], [])

    def __init__(self, ch_axis: int = 0, dtype: Any = quint8,
                 qscheme: Any = flambeau.per_channel_affine, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None,
                 factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
                 **kwargs: Any):
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps,
                         is_dynamic, **kwargs)
        self.ch_axis = ch_axis

    def _range_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.movedim(self.ch_axis, 0).flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
        return rows.amin(1), rows.amax(1)


@copy_inherited("forward")
class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moving averages of the least and the greatest number of each tensor."""

    def __init__(self, averaging_constant: float = 0.01, dtype: Any = quint8,
                 qscheme: Any = flambeau.per_tensor_affine, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, None, eps, is_dynamic,
                         **kwargs)
        self.averaging_constant = averaging_constant


@copy_inherited("forward")
class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Moving averages of the least and the greatest number at each index of `ch_axis`."""

    def __init__(self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = quint8,
                 qscheme: Any = flambeau.per_channel_affine, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None, eps: float = _EPS,
                 is_dynamic: bool = False, **kwargs: Any):
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, None, eps,
                         is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant


@copy_inherited("forward")
class PlaceholderObserver(_Blind):
    """Says how to quantise later, as dynamic quantisation does; looks at nothing."""

    def __init__(self, dtype: Any = flambeau.float32, custom_op_name: str = "",
                 compute_dtype: Any = None, quant_min: int | None = None,
                 quant_max: int | None = None, qscheme: Any = None, eps: float | None = None,
                 is_dynamic: bool = False):
        super().__init__(dtype, is_dynamic)
        self.qscheme = flambeau.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps, self.custom_op = eps, custom_op_name

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


@copy_inherited("forward")
class NoopObserver(_Blind):
    """Looks at nothing: for numbers that are converted without a scale, such as float16."""

    def __init__(self, dtype: Any = flambeau.float16, custom_op_name: str = ""):
        super().__init__(dtype)
        self.custom_op = custom_op_name


@copy_inherited("forward")
class ReuseInputObserver(_Blind):
    """Looks at nothing: the result is quantised as the input was."""

    def __init__(self) -> None:
        super().__init__(quint8)


class RecordingObserver(_Blind):
    """Keeps copies of all tensors."""

    def __init__(self, dtype: Any = quint8):
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The tensors seen."""
        return self.tensor_val


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are given."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: Any = quint8,
                 qscheme: Any = flambeau.per_tensor_affine, quant_min: int = 0,
                 quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any):
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", flambeau.tensor([scale]))
        self.register_buffer("zero_point", flambeau.tensor([zero_point], dtype=flambeau.int))

    def forward(self, X: Tensor) -> Tensor:
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.scale, self.zero_point


def _is_activation_post_process(module: Any) -> bool:
    """Is this what watches the results of a module?"""
    from flambeau.ao.quantization.fake_quantize import FakeQuantizeBase
    return isinstance(module, ObserverBase | FakeQuantizeBase | AffineQuantizedObserverBase)


def get_observer_state_dict(mod: nn.Module) -> Any:
    """The entries of `mod.state_dict()` that belong to what watches results of modules."""
    whole = mod.state_dict()
    part = OrderedDict((key, value) for key, value in whole.items()
                       if "activation_post_process" in key)
    part._metadata = whole._metadata            # type: ignore[attr-defined]
    return part


def load_observer_state_dict(mod: nn.Module, obs_dict: Any) -> None:
    """Give the observers in `mod` the state that `get_observer_state_dict` has kept."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, f"{name}.", {}, False, missing, unexpected, [])
    for kind, keys in (("Missing", missing), ("Unexpected", unexpected)):
        for key in keys:
            if "observer" in key or "activation_post_process" in key:
                raise Exception(f"{kind} keys for observer {key} in state_dict")


from flambeau.ao.quantization.histogram import HistogramObserver  # noqa: E402

# ---- usual choices ------------------------------------------------------------------------------

_weight: dict[str, Any] = {"dtype": qint8}
_narrow: dict[str, Any] = {"quant_min": -127, "quant_max": 127, "eps": 2 ** -12}
default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_reuse_input_observer = ReuseInputObserver
default_weight_observer = MinMaxObserver.with_args(
    **_weight, qscheme=flambeau.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    **_weight, qscheme=flambeau.per_tensor_symmetric, **_narrow)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    **_weight, qscheme=flambeau.per_channel_symmetric)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    **_weight, qscheme=flambeau.per_channel_symmetric, **_narrow)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=quint8, qscheme=flambeau.per_channel_affine_float_qparams, ch_axis=0)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=flambeau.quint4x2, qscheme=flambeau.per_channel_affine_float_qparams, ch_axis=0)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2 / 256, zero_point=128, dtype=quint8, quant_min=0, quant_max=255)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1 / 256, zero_point=0, dtype=quint8, quant_min=0, quant_max=255)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer


adopt(globals(), "ao.quantization.")

__all__ = ["AffineQuantizedObserverBase", "FixedQParamsObserver", "Granularity",
           "HistogramObserver", "MappingType", "MinMaxObserver", "MovingAverageMinMaxObserver",
           "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerAxis",
           "PerBlock", "PerChannelMinMaxObserver", "PerGroup", "PerRow", "PerTensor", "PerToken",
           "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "TorchAODType",
           "UniformQuantizationObserverBase", "ZeroPointDomain",
           "default_affine_fixed_qparams_observer", "default_debug_observer",
           "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
           "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
           "default_float_qparams_observer_4bit", "default_histogram_observer", "default_observer",
           "default_per_channel_weight_observer", "default_placeholder_observer",
           "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer",
           "default_weight_observer", "get_block_size", "get_observer_state_dict",
           "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
           "weight_observer_range_neg_127_to_127"]
