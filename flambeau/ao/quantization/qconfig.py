"""`QConfig`: how activations and weights are to be quantised, and the usual choices."""
from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Optional

import flambeau
from flambeau import nn, qint8
from flambeau._support.deprecation import deprecated
from flambeau.ao.quantization import fake_quantize as fakes
from flambeau.ao.quantization import observer as observers
from flambeau.ao.quantization.fake_quantize import FakeQuantize, FusedMovingAvgObsFakeQuantize
from flambeau.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
)

ObserverOrFakeQuantize = observers.ObserverBase | fakes.FakeQuantizeBase


class _Choice(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Choice):
    """Classes of observers (or fake-quantising modules), or what `with_args` makes of them, for
    `activation` and `weight`."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> Any:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("QConfig received observer instance, please pass observer class "
                             "instead. Use MyObserver.with_args(x=1) to override arguments to "
                             "constructor if needed")
        return super().__new__(cls, activation, weight)


class QConfigDynamic(_Choice):
    """Deprecated: `QConfig` does for dynamic quantisation too."""

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> Any:
        if isinstance(weight, nn.Module):
            raise ValueError("QConfigDynamic received observer instance, please pass observer "
                             "class instead. Use MyObserver.with_args(x=1) to override arguments "
                             "to constructor if needed")
        warnings.warn("QConfigDynamic is going to be deprecated in PyTorch 1.12, please use "
                      "QConfig instead", stacklevel=2)
        return super().__new__(cls, activation, weight)


QConfigAny = Optional[QConfig]                      # noqa: UP045


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Do two configurations say the same?"""
    return (q1 is None) == (q2 is None) and (q1 is None or tuple(q1) == tuple(q2))


# ---- usual choices ------------------------------------------------------------------------------

_float = NoopObserver.with_args(dtype=flambeau.float32)
_narrow: dict[str, Any] = {"dtype": qint8, "reduce_range": False, "eps": 2 ** -12}
_narrow_fake = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, **_narrow)
default_qconfig = QConfig(observers.default_observer, observers.default_weight_observer)
default_debug_qconfig = QConfig(observers.default_debug_observer,
                                observers.default_weight_observer)
default_per_channel_qconfig = QConfig(observers.default_observer,
                                      observers.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(observers.default_dynamic_quant_observer,
                                  observers.default_weight_observer)
per_channel_dynamic_qconfig = QConfig(observers.default_dynamic_quant_observer,
                                      observers.default_per_channel_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=flambeau.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=flambeau.float16))
float16_static_qconfig = QConfig(PlaceholderObserver.with_args(dtype=flambeau.float16),
                                 PlaceholderObserver.with_args(dtype=flambeau.float16))
float_qparams_weight_only_qconfig = QConfig(observers.default_placeholder_observer,
                                            observers.default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(observers.default_placeholder_observer,
                                                 observers.default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(fakes.default_fake_quant, fakes.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fakes.default_dynamic_fake_quant,
                                      fakes.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, fakes.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fakes.default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(fakes.default_fused_act_fake_quant,
                                 fakes.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(observers.default_reuse_input_observer, NoopObserver)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_embedding_qat_qconfig = QConfig(_float, fakes.default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(_float, fakes.default_embedding_fake_quant_4bit)
default_symmetric_qnnpack_qconfig = QConfig(HistogramObserver.with_args(**_narrow),
                                            observers.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(**_narrow),
    observers.per_channel_weight_observer_range_neg_127_to_127)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _narrow_fake, fakes.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _narrow_fake, fakes.fused_per_channel_wt_fake_quant_range_neg_127_to_127)

# What an engine can do: is one bit of activations to be left free (None: not said), and may each
# channel of a weight have a scale of its own?
_ENGINES: dict[str, tuple[bool, bool]] = {
    "fbgemm": (True, True), "x86": (True, True), "qnnpack": (False, False), "onednn": (False, True)}


def _engine(backend: str) -> tuple[bool, bool]:
    if backend not in _ENGINES:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of "
                             f"{list(_ENGINES)}")
    return _ENGINES[backend]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """How to quantise after training for an engine.

    >>> from flambeau.ao.quantization import get_default_qconfig
    >>> get_default_qconfig("qnnpack").weight().qscheme
    torch.per_tensor_symmetric
    """
    reduce_range, channels = _engine(backend)
    if version != 0:
        raise AssertionError(f"Version number: {version} in get_default_qconfig is not supported. "
                             "Version number must be 0")
    return QConfig(HistogramObserver.with_args(reduce_range=reduce_range),
                   observers.default_per_channel_weight_observer if channels
                   else observers.default_weight_observer)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """How to quantise in training for an engine."""
    reduce_range, channels = _engine(backend)
    if version not in (0, 1):
        raise AssertionError(f"Version number: {version}in get_default_qat_qconfig is not "
                             "supported. Version number must be 0 or 1")
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    weight = (fakes.default_fused_wt_fake_quant, fakes.default_fused_per_channel_wt_fake_quant) \
        if version else (fakes.default_weight_fake_quant,
                         fakes.default_per_channel_weight_fake_quant)
    more = {} if backend == "onednn" else {"reduce_range": reduce_range}
    activation = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255,
                                **more)
    return QConfig(activation, weight[channels])


_AS_DICT = ("`torch.ao.quantization.{0}_dict` is deprecated and will be removed in a future "
            "version. Please use `torch.ao.quantization.{0}_mapping` instead.")


@deprecated(_AS_DICT.format("get_default_qconfig"))
def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dictionary."""
    from flambeau.ao.quantization.qconfig_mapping import get_default_qconfig_mapping
    return get_default_qconfig_mapping(backend, version).to_dict()


@deprecated(_AS_DICT.format("get_default_qat_qconfig"))
def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dictionary."""
    from flambeau.ao.quantization.qconfig_mapping import get_default_qat_qconfig_mapping
    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _activation_is_memoryless(qconfig: Any) -> bool:
    """Does what watches activations look at each tensor by itself, so that it can watch inputs?"""
    def memoryless(observer: Any) -> bool:
        return getattr(observer, "averaging_constant", None) == 1

    watch = qconfig.activation()
    if isinstance(watch, FakeQuantize):
        return memoryless(watch.activation_post_process)
    return memoryless(watch)


_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def _assert_valid_qconfig(qconfig: Any, module: nn.Module) -> None:
    if qconfig is None or not isinstance(module, _TRANSPOSED):
        return
    if isinstance(qconfig.weight(), observers.PerChannelMinMaxObserver
                  | observers.MovingAveragePerChannelMinMaxObserver):
        raise AssertionError("Per channel weight observer is not supported yet for "
                             "ConvTranspose{n}d.")


__all__ = ["QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig",
           "default_debug_qconfig", "default_dynamic_qat_qconfig", "default_dynamic_qconfig",
           "default_embedding_qat_qconfig", "default_embedding_qat_qconfig_4bit",
           "default_per_channel_qconfig", "default_per_channel_symmetric_qnnpack_qat_qconfig",
           "default_per_channel_symmetric_qnnpack_qconfig", "default_qat_qconfig",
           "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
           "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig",
           "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig",
           "float16_dynamic_qconfig", "float16_static_qconfig", "float_qparams_weight_only_qconfig",
           "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
           "get_default_qat_qconfig_dict", "get_default_qconfig", "get_default_qconfig_dict",
           "per_channel_dynamic_qconfig", "qconfig_equals"]
