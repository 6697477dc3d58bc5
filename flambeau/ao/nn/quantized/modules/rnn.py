"""Recurrent networks and attention whose steps are quantised modules."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn import quantizable


@define_in_subclasses()
class _FromObserved:
    """Made by converting each part of the module of `quantizable` that was observed."""

    _SHORT_NAME = "LSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """Not offered: there has to be an observed module between."""
        short = cls._SHORT_NAME
        raise NotImplementedError(
            f"It looks like you are trying to convert a non-observed {short} module. Please, see "
            f"the examples on quantizable {short}s.")

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantised form of an observed module."""
        from flambeau.ao.quantization.quantize import convert
        if not isinstance(other, cls._FLOAT_MODULE):            # type: ignore[attr-defined]
            raise AssertionError(f"{cls.__name__}.from_observed takes a module of quantizable")
        result = convert(other, inplace=False, remove_qconfig=True)
        result.__class__ = cls
        return result


class LSTM(_FromObserved, quantizable.LSTM):
    """An LSTM of quantised tensors, step by step."""

    _FLOAT_MODULE = quantizable.LSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"


class MultiheadAttention(_FromObserved, quantizable.MultiheadAttention):
    """Attention with quantised projections; the products between are those of floats."""

    _FLOAT_MODULE = quantizable.MultiheadAttention
    _SHORT_NAME = "MHA"

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Not offered: there has to be an observed module between."""
        return super().from_float(other)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantised form of an observed module."""
        result = super().from_observed(other)
        for name in ("bias_k", "bias_v"):
            if (value := getattr(result, name)) is not None:
                value = value.detach()
                scale, zero = flambeau.ops.aten._choose_qparams_per_tensor(value)
                delattr(result, name)
                setattr(result, name, flambeau.quantize_per_tensor(
                    value, scale, zero, flambeau.quint8))
        return result


__all__ = ["LSTM"]
