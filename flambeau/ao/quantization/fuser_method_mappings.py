"""How modules in a row become one."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import nn
from flambeau.ao.nn import intrinsic
from flambeau.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from flambeau.nn.utils.parametrize import type_before_parametrizations

_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def _expect_same_mode(*modules: nn.Module) -> None:
    if len({m.training for m in modules}) > 1:
        names = " and ".join(("Conv", "BN", "ReLU")[:len(modules)]) if len(modules) == 2 else \
            "Conv, BN, ReLU"
        raise AssertionError(f"{names} both must be in the same mode (train or eval).")


def _dimensions(conv: Any) -> int:
    return int(type_before_parametrizations(conv).__name__[-2])


def _in_training(conv: Any, bn: Any, prefix: str, *more: nn.Module) -> Any:
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm2d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with tracking_running_stats set to "
                             "True")
    return getattr(intrinsic, f"{prefix}{_dimensions(conv)}d")(conv, bn, *more)


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution that does what the two do; for training, the two in a row.

    >>> from flambeau.ao.quantization import fuse_conv_bn
    >>> fuse_conv_bn(False, nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval())
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    _expect_same_mode(conv, bn)
    return _in_training(conv, bn, "ConvBn") if is_qat else fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """A convolution that does what the first two do, with the third; for training, all in a row."""
    _expect_same_mode(conv, bn, relu)
    if is_qat:
        return _in_training(conv, bn, "ConvBnReLU", relu)
    fused: Any = getattr(intrinsic, f"ConvReLU{_dimensions(conv)}d")
    return fused(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> nn.Module:
    """A linear map that does what the two do; for training, the two in a row."""
    _expect_same_mode(linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    if bn.num_features != linear.out_features:
        raise AssertionError("Output features of Linear must match num_features of BatchNorm1d")
    if not bn.affine:
        raise AssertionError("Only support fusing BatchNorm1d with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm1d with tracking_running_stats set to "
                             "True")
    return intrinsic.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: nn.Module, bn: nn.Module) -> nn.Module:
    """A transposed convolution that does what the two do."""
    _expect_same_mode(convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _in_a_row(fused: Any) -> Callable[..., nn.Module]:
    """The fuser of two modules into a class that holds both."""
    def fuser_method(is_qat: bool, m1: nn.Module, m2: nn.Module) -> nn.Module:
        return fused(m1, m2)
    fuser_method.fused_class = fused                # type: ignore[attr-defined]
    return fuser_method


def _default_fusers() -> dict[tuple[Any, ...], Any]:
    fusers: dict[tuple[Any, ...], Any] = {}
    for n, conv in enumerate(_CONVS, 1):
        bn = getattr(nn, f"BatchNorm{n}d")
        fusers[conv, bn] = fuse_conv_bn
        fusers[conv, bn, nn.ReLU] = fuse_conv_bn_relu
    for n, conv in enumerate(_CONVS, 1):
        fusers[conv, nn.ReLU] = _in_a_row(getattr(intrinsic, f"ConvReLU{n}d"))
    fusers[nn.Linear, nn.BatchNorm1d] = fuse_linear_bn
    fusers[nn.Linear, nn.ReLU] = _in_a_row(intrinsic.LinearReLU)
    fusers[nn.BatchNorm2d, nn.ReLU] = _in_a_row(intrinsic.BNReLU2d)
    fusers[nn.BatchNorm3d, nn.ReLU] = _in_a_row(intrinsic.BNReLU3d)
    for n in (1, 2, 3):
        fusers[getattr(nn, f"ConvTranspose{n}d"), getattr(nn, f"BatchNorm{n}d")] = \
            fuse_convtranspose_bn
    return fusers


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _default_fusers()


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """What makes one module of modules of these classes in a row.

    >>> from flambeau.ao.quantization import get_fuser_method
    >>> get_fuser_method((nn.Conv2d, nn.BatchNorm2d)).__name__
    'fuse_conv_bn'
    """
    fusers = {**_DEFAULT_OP_LIST_TO_FUSER_METHOD, **(additional_fuser_method_mapping or {})}
    if op_list not in fusers:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return fusers[op_list]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict[Any, Any]) -> Any:
    """What makes one module of what a pattern matches; patterns may leave parts open."""
    pattern = op_pattern if isinstance(op_pattern, tuple) else (op_pattern,)
    for known, method in fuser_method_mapping.items():
        parts = known if isinstance(known, tuple) else (known,)
        if len(parts) == len(pattern) and all(
                a == b or getattr(a, "__name__", "") == "MatchAllNode"
                for a, b in zip(parts, pattern)):
            return method
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")


__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn",
           "get_fuser_method", "get_fuser_method_new"]
