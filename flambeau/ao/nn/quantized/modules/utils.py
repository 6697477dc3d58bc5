"""What quantised modules share: how they come from float ones, and their state."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from flambeau.nn.utils.parametrize import type_before_parametrizations


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """A weight in integers, with the scale and zero point that its observer gives."""
    scale, zero = observer.calculate_qparams()
    scheme = observer.qscheme
    if scheme in (flambeau.per_tensor_symmetric, flambeau.per_tensor_affine):
        return flambeau.quantize_per_tensor(float_wt, float(scale), int(zero), flambeau.qint8)
    if scheme in (flambeau.per_channel_symmetric, flambeau.per_channel_affine):
        return flambeau.quantize_per_channel(float_wt, scale.to(flambeau.double),
                                             zero.to(flambeau.int64), observer.ch_axis,
                                             flambeau.qint8)
    if scheme is flambeau.per_channel_affine_float_qparams:
        return flambeau.quantize_per_channel(float_wt, scale.to(flambeau.float),
                                             zero.to(flambeau.float), observer.ch_axis,
                                             observer.dtype)
    raise ValueError(f"Unexpected qscheme {scheme}")


def _empty_weight(*sizes: int) -> Tensor:
    """A quantised weight that has not been set."""
    return flambeau.quantize_per_tensor(flambeau.zeros(sizes), 1.0, 0, flambeau.qint8)


class _Described(nn.Module):
    """Printed as `Quantized<class>`, without its submodules."""

    _kind = "Quantized"

    def _get_name(self) -> str:
        return f"{self._kind}{type(self).__name__}"


class _WithScale(_Described):
    """A module with numbers `scale` and `zero_point` for its result, saved as tensors."""

    scale: float = 1.0
    zero_point: int = 0

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._save_weight(destination, prefix)
        destination[prefix + "scale"] = flambeau.tensor(self.scale)
        destination[prefix + "zero_point"] = flambeau.tensor(self.zero_point)

    def _save_weight(self, destination: Any, prefix: str) -> None:
        """For modules whose weight is no parameter."""

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _set_scale(self, observer: Any) -> Any:
        """Take scale and zero point from what has watched the results; gives the module."""
        scale, zero = observer.calculate_qparams()
        self.scale, self.zero_point = float(scale), int(zero)
        return self


@define_in_subclasses("from_float", further=True)
class WeightedQuantizedModule(_WithScale):
    """A module with a quantised weight, made from a float module of the class `_FLOAT_MODULE`."""

    _FLOAT_MODULE: Any
    _ALSO_FROM: tuple[Any, ...] = ()            # names of other classes, as a mapping lists them

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module that was observed, or trained with rounding."""
        activation = getattr(mod, "activation_post_process", None)
        watch = getattr(mod, "weight_fake_quant", None)
        if watch is None:
            cls._check_float(mod)
            if isinstance(mod, nn.Sequential):
                mod = cls._fused_parts(mod)
            watch = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        elif hasattr(mod, "bn"):
            mod.weight, mod.bias = _fused_weights(mod)
        if not use_precomputed_fake_quant:
            watch(mod.weight)
        return cls._from_observed(mod, activation, watch)

    @classmethod
    def _check_float(cls, mod: Any) -> None:
        kinds = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
        if type_before_parametrizations(mod) not in kinds and not hasattr(
                mod, "activation_post_process"):
            names = ", ".join(kind.__name__ for kind in kinds)
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names} but got: "
                                 f"{type(mod)}")
        if not isinstance(mod, nn.Sequential) and not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")

    @classmethod
    def _fused_parts(cls, mod: Any) -> Any:
        """Of modules in a row the one with the weight, which then has the row's qconfig."""
        first = cls._first(mod)
        if not hasattr(first, "qconfig"):
            first.qconfig = mod.qconfig
        return first

    @classmethod
    def _first(cls, row: Any) -> Any:
        """Of modules in a row the one with the weight."""
        return row[0]

    @classmethod
    def _from_observed(cls, mod: Any, activation: Any, watch: Any) -> Any:
        if watch.dtype is not flambeau.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {watch.dtype}")
        result = cls._like(mod)
        result._take(_quantize_weight(mod.weight.detach().float(), watch), mod.bias)
        if activation is None or activation.dtype is flambeau.float:
            return result                       # nothing is known of the results
        return result._set_scale(activation)

    @classmethod
    def _like(cls, mod: Any) -> Any:
        """One of this class with the sizes of another module."""
        raise NotImplementedError(f"{cls.__name__}._like")

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a module from `quantized.reference`, or of one in a row."""
        return cls._from_reference(ref_module, output_scale, output_zero_point)

    @classmethod
    def _from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        mod = cls._first(mod) if isinstance(mod, nn.Sequential) else mod
        result = cls._like(mod)
        result._take(mod.get_quantized_weight(), mod.bias)
        result.scale, result.zero_point = float(scale), int(zero_point)
        return result

    def _take(self, w: Tensor, b: Tensor | None) -> None:
        self.set_weight_bias(w, b)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take a quantised weight and a bias."""
        raise NotImplementedError(f"{type(self).__name__}.set_weight_bias")


def _fused_weights(mod: Any) -> Any:
    bn = mod.bn
    fuse = fuse_linear_bn_weights if isinstance(mod, nn.Linear) else fuse_conv_bn_weights
    return fuse(mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)


__all__ = ["WeightedQuantizedModule"]
