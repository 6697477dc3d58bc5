"""Which class becomes which: from float modules to quantised ones."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import nn
from flambeau.ao.nn import intrinsic, quantizable
from flambeau.ao.nn import qat as nn_qat
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn import sparse as nn_sparse
from flambeau.ao.nn.intrinsic import qat as intrinsic_qat
from flambeau.ao.nn.intrinsic import quantized as intrinsic_quantized
from flambeau.ao.nn.quantized import dynamic, reference
from flambeau.ao.quantization import fake_quantize
from flambeau.ao.quantization.stubs import DeQuantStub, QuantStub
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear
from flambeau.nn.utils.parametrize import type_before_parametrizations
from flambeau.ops.quantized import library as ops

_DIMENSIONS = (1, 2, 3)
_CONVS = [f"Conv{n}d" for n in _DIMENSIONS]
_TRANSPOSED = [f"ConvTranspose{n}d" for n in _DIMENSIONS]
_STUBS: dict[Any, Any] = {QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize}


def _same_names(source: Any, target: Any, names: Any) -> dict[Any, Any]:
    return {getattr(source, name): getattr(target, name) for name in names}


DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    **_STUBS,
    **_same_names(nn, nnq, ("BatchNorm2d", "BatchNorm3d", "Dropout", *_CONVS, *_TRANSPOSED, "ELU",
                            "Embedding", "EmbeddingBag", "GroupNorm", "Hardswish",
                            "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
                            "LeakyReLU")),
    NonDynamicallyQuantizableLinear: nnq.Linear,
    **_same_names(nn, nnq, ("Linear", "ReLU6", "PReLU")),
    nnq.FloatFunctional: nnq.QFunctional,
    **_same_names(intrinsic, intrinsic_quantized, (
        "BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "ConvAdd2d",
        "ConvAddReLU2d", "LinearReLU", "LinearLeakyReLU", "LinearTanh")),
    **{getattr(intrinsic_qat, f"ConvBn{n}d"): getattr(nnq, f"Conv{n}d") for n in _DIMENSIONS},
    **{getattr(intrinsic_qat, f"ConvBnReLU{n}d"): getattr(intrinsic_quantized, f"ConvReLU{n}d")
       for n in _DIMENSIONS},
    **_same_names(intrinsic_qat, intrinsic_quantized, ("ConvReLU2d", "ConvReLU3d", "LinearReLU")),
    intrinsic_qat.LinearBn1d: nnq.Linear,
    **_same_names(nn_qat, nnq, ("Linear", "Conv2d", "Conv3d")),
}
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    **_STUBS, **_same_names(nn, reference, ("Linear", *_CONVS, *_TRANSPOSED, "Embedding",
                                            "EmbeddingBag", "GRUCell", "LSTMCell", "RNNCell",
                                            "LSTM"))}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    **_same_names(nn, nn_qat, ("Conv2d", "Conv3d", "Linear")),
    NonDynamicallyQuantizableLinear: nn_qat.Linear,
    **_same_names(intrinsic, intrinsic_qat, (
        "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
        "ConvReLU2d", "ConvReLU3d", "LinearReLU", "LinearBn1d"))}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    **_same_names(nn, dynamic, ("GRUCell", "Linear")),
    nn_qat.dynamic.Linear: dynamic.Linear,
    NonDynamicallyQuantizableLinear: dynamic.Linear,
    **_same_names(nn, dynamic, ("LSTM", "GRU", "LSTMCell", "RNNCell")),
    intrinsic.LinearReLU: intrinsic_quantized.dynamic.LinearReLU,
    **_same_names(nn, nnq, ("EmbeddingBag", "Embedding"))}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Any, Callable[..., Any]] = {
    getattr(nn.functional, name): getattr(ops, name)
    for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys((nn.Hardsigmoid, nn.Sigmoid, nn.Softmax),
                    fake_quantize.default_fixed_qparams_range_0to1_fake_quant),
    nn.Tanh: fake_quantize.default_fixed_qparams_range_neg1to1_fake_quant}
DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    nn.Linear: nn_sparse.quantized.Linear}
DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    nn.Linear: nn_sparse.quantized.dynamic.Linear}
_EMBEDDINGS = ("EmbeddingBag", "Embedding")


def no_observer_set() -> set[Any]:
    """Classes behind which nothing is to watch."""
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to quantised class, for scales that are found before.

    >>> from flambeau.ao.quantization import get_default_static_quant_module_mappings
    >>> get_default_static_quant_module_mappings()[nn.Linear].__name__
    'Linear'
    """
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to the float class that computes with rounded weights."""
    return dict(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Callable[..., Any], Any]:
    """The static mapping, with embeddings that were trained with rounded tables."""
    return DEFAULT_STATIC_QUANT_MODULE_MAPPINGS | _same_names(nn_qat, nnq, _EMBEDDINGS)


def get_default_static_sparse_quant_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to quantised class with blocks of zeros."""
    return dict(DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to the class that trains with rounded weights."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Callable[..., Any], Any]:
    """The mapping for training, with embeddings."""
    return DEFAULT_QAT_MODULE_MAPPINGS | _same_names(nn, nn_qat, _EMBEDDINGS)


def get_default_dynamic_quant_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to the class that quantises what comes in."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_default_dynamic_sparse_quant_module_mappings() -> dict[Callable[..., Any], Any]:
    """Float class to the class that quantises what comes in and has blocks of zeros."""
    return DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Callable[..., Any]]:
    """Float function to the function of quantised tensors."""
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_default_qconfig_propagation_list() -> set[Callable[..., Any]]:
    """Classes whose results are watched."""
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS,
            *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, nn.Sequential}


def get_default_compare_output_module_list() -> set[Callable[..., Any]]:
    """Classes whose results tools compare, float and quantised."""
    tables = (DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS,
              DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
    return get_default_qconfig_propagation_list() | {v for t in tables for v in t.values()}


def _class_for(float_module_class: Any, mapping: dict[Any, Any], more: Any) -> Any:
    found = {**mapping, **(more or {})}.get(float_module_class)
    if found is None:
        raise AssertionError(f"Floating point module class {float_module_class} does not have a "
                             "corresponding quantized module class")
    return found


def get_static_quant_module_class(float_module_class: Callable[..., Any],
                                  additional_static_quant_mapping: Any = None,
                                  is_reference: bool = False) -> Any:
    """The class that a float class becomes with scales that are found before."""
    mapping = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference \
        else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    return _class_for(float_module_class, mapping, additional_static_quant_mapping)


def get_dynamic_quant_module_class(float_module_class: Callable[..., Any],
                                   additional_dynamic_quant_mapping: Any = None) -> Any:
    """The class that a float class becomes if it is to quantise what comes in."""
    return _class_for(float_module_class, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
                      additional_dynamic_quant_mapping)


def get_quantized_operator(float_op: Any) -> Callable[..., Any]:
    """The function of quantised tensors for a float function."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: nn.Module) -> Any:
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: nn.Module) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS


__all__ = ["DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS",
           "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS", "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
           "DEFAULT_QAT_MODULE_MAPPINGS", "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
           "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS",
           "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
           "get_default_dynamic_sparse_quant_module_mappings",
           "get_default_float_to_quantized_operator_mappings", "get_default_qat_module_mappings",
           "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings",
           "get_default_static_quant_reference_module_mappings",
           "get_default_static_sparse_quant_module_mappings", "get_dynamic_quant_module_class",
           "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings",
           "get_quantized_operator", "get_static_quant_module_class", "no_observer_set"]
