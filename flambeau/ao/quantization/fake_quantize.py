"""Modules that quantise and dequantise, with a gradient: what quantisation-aware training learns
with."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn, qint8, quint8
from flambeau.ao.quantization import observer as observers
from flambeau.ao.quantization import utils
from flambeau.ao.quantization.observer import (
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    make_room,
)


class FakeQuantizeBase(observers._Configurable):
    """What fake-quantising modules are: observing and quantising can each be switched off."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor
    _flag_dtype: Any = flambeau.uint8

    def __init__(self) -> None:
        super().__init__()
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, flambeau.tensor([1], dtype=self._flag_dtype))

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Quantise from now on, or not."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Pass tensors on as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Learn the range from now on, or not."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Keep scale and zero point as they are."""
        self.enable_observer(False)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to what integers between `quant_min` and `quant_max` can stand for, with the scale and
    the zero point that an observer, made with `observer_kwargs`, finds.

    >>> from flambeau.ao.quantization import FakeQuantize
    >>> fake = FakeQuantize(quant_min=0, quant_max=15)
    >>> fake(flambeau.tensor([-1.0, 0.09, 0.5]))
    tensor([-1.0000,  0.1000,  0.5000])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None,
                 quant_max: int | None = None, is_dynamic: bool = False, **observer_kwargs: Any):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.is_dynamic = is_dynamic
        self._watch(observer(**observer_kwargs))

    def _watch(self, observer: Any) -> None:
        self.activation_post_process = observer
        self.quant_min, self.quant_max = observer.quant_min, observer.quant_max
        self.dtype, self.qscheme = observer.dtype, observer.qscheme
        self.ch_axis = getattr(observer, "ch_axis", -1)
        self.is_per_channel = self.qscheme in utils.CHANNEL_SCHEMES
        floating = self.qscheme is flambeau.per_channel_affine_float_qparams
        self.register_buffer("scale", flambeau.tensor([1.0]))
        self.register_buffer("zero_point", flambeau.tensor(
            [0], dtype=flambeau.float if floating else flambeau.int))

    def calculate_qparams(self) -> Any:
        """The scale and the zero point that the observer gives."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero = self.calculate_qparams()
            self.scale, self.zero_point = scale.clone(), zero.to(self.zero_point.dtype)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return flambeau.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis % X.dim(), self.quant_min,
                self.quant_max)
        return flambeau.fake_quantize_per_tensor_affine(
            X, self.scale, self.zero_point, self.quant_min, self.quant_max)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        make_room(self, ("scale", "zero_point"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
                f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
                f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}")


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with an observer of moving averages."""

    _flag_dtype = flambeau.int64

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0,
                 quant_max: int = 255, **observer_kwargs: Any):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, MovingAverageMinMaxObserver
                          | MovingAveragePerChannelMinMaxObserver):
            raise AssertionError("Fused observer+fake_quant module only works with "
                                 "MovingAverageMinMaxObserver")
        self.is_symmetric_quant = self.qscheme in utils.SYMMETRIC_SCHEMES

    def forward(self, X: Tensor) -> Tensor:
        watch = self.activation_post_process
        if self.is_per_channel and watch.min_val.numel() != X.size(self.ch_axis):
            sizes = (X.size(self.ch_axis),)
            watch.min_val = flambeau.full(sizes, float("inf"))
            watch.max_val = flambeau.full(sizes, -float("inf"))
            self.scale = flambeau.ones(sizes)
            self.zero_point = flambeau.zeros(sizes, dtype=self.zero_point.dtype)
        return flambeau.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, watch.min_val, watch.max_val,
            self.scale, self.zero_point, watch.averaging_constant, self.quant_min, self.quant_max,
            self.ch_axis, self.is_per_channel, self.is_symmetric_quant)

    def extra_repr(self) -> str:
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.quant_min}, "
                f"quant_max={self.quant_max}, qscheme={self.qscheme}, "
                f"reduce_range={self.activation_post_process.reduce_range}")


class FixedQParamsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with a scale and a zero point that are given, by a `FixedQParamsObserver`."""

    def __init__(self, observer: Any):
        FakeQuantizeBase.__init__(self)
        self.is_dynamic = False
        self._watch(observer())
        self.scale, self.zero_point = self.calculate_qparams()

    def extra_repr(self) -> str:
        return (f"fake_quant_enabled={self.fake_quant_enabled}, "
                f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, "
                f"quant_min={self.activation_post_process.quant_min}, "
                f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}")


def _switch(name: str, doc: str) -> Any:
    def switch(mod: nn.Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()
    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"For `module.apply`: {doc}"
    return switch


enable_fake_quant = _switch("enable_fake_quant", "fake-quantising modules quantise from now on.")
disable_fake_quant = _switch("disable_fake_quant", "fake-quantising modules pass tensors on.")
enable_observer = _switch("enable_observer", "fake-quantising modules learn from now on.")
disable_observer = _switch("disable_observer", "fake-quantising modules learn no more.")

# ---- usual choices ------------------------------------------------------------------------------

_act: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255,
                        "dtype": quint8}
_weight: dict[str, Any] = {
    "observer": MovingAverageMinMaxObserver, "quant_min": -128, "quant_max": 127, "dtype": qint8,
    "qscheme": flambeau.per_tensor_symmetric}
_channels: dict[str, Any] = _weight | {"observer": MovingAveragePerChannelMinMaxObserver,
                                       "qscheme": flambeau.per_channel_symmetric}
_narrow: dict[str, Any] = {"quant_min": -127, "eps": 2 ** -12}
default_fake_quant = FakeQuantize.with_args(
    **_act, qscheme=flambeau.per_tensor_affine, reduce_range=True)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True,
    dtype=quint8, averaging_constant=1)
default_weight_fake_quant = FakeQuantize.with_args(**_weight, reduce_range=False)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_channels, reduce_range=False, ch_axis=0)
_table: dict[str, Any] = {"observer": MovingAveragePerChannelMinMaxObserver,
                          "qscheme": flambeau.per_channel_affine_float_qparams}
default_embedding_fake_quant = FakeQuantize.with_args(
    **_table, dtype=quint8, quant_min=0, quant_max=255, ch_axis=0, averaging_constant=1)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    **_table, ch_axis=0, dtype=flambeau.quint4x2, averaging_constant=1)
default_histogram_fake_quant = FakeQuantize.with_args(
    **_act | {"observer": observers.HistogramObserver}, qscheme=flambeau.per_tensor_affine,
    reduce_range=True)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_act)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_weight)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_channels)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_weight | _narrow)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_channels | _narrow)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=observers.default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=observers.default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant

__all__ = ["FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize",
           "FusedMovingAvgObsFakeQuantize", "default_affine_fixed_qparams_fake_quant",
           "default_dynamic_fake_quant", "default_embedding_fake_quant",
           "default_embedding_fake_quant_4bit", "default_fake_quant",
           "default_fixed_qparams_range_0to1_fake_quant",
           "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
           "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant",
           "default_histogram_fake_quant", "default_per_channel_weight_fake_quant",
           "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant",
           "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
           "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
           "fused_wt_fake_quant_range_neg_127_to_127"]
