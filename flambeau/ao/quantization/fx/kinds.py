"""What a step of a graph is to quantisation: the one table that preparing and lowering read."""
from __future__ import annotations

import operator
from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.quantization import quantization_mappings as mappings
from flambeau.ops.quantized import library as ops

F = nn.functional

# Modules whose quantised form is another module with a scale for its result.
MODULES = {kind for kind in mappings.DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
           if kind.__name__ not in ("QuantStub", "DeQuantStub", "FloatFunctional", "Embedding",
                                    "EmbeddingBag", "ReLU6")}
# Modules that only their weights make quantised.
TABLES = (nn.Embedding, nn.EmbeddingBag)
# What has a result of a known range, in integers too.
FIXED = (nn.Sigmoid, nn.Tanh, nn.Hardsigmoid, nn.Softmax, flambeau.sigmoid, flambeau.tanh,
         F.sigmoid, F.tanh, F.hardsigmoid, "sigmoid", "sigmoid_", "tanh", "tanh_", "hardsigmoid",
         "hardsigmoid_")
# What works on integers as it is: the result has the scale of the (first) argument.
SHARED = (
    nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Identity, nn.Flatten, nn.PixelShuffle, nn.PixelUnshuffle,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.Upsample,
    F.relu, F.relu6, F.hardtanh, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.avg_pool1d,
    F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d,
    F.adaptive_avg_pool3d, F.interpolate, F.pixel_shuffle, F.pixel_unshuffle,
    flambeau.relu, flambeau.clamp, flambeau.flatten, flambeau.mean, flambeau.permute,
    flambeau.squeeze, flambeau.stack, flambeau.transpose, flambeau.unsqueeze, flambeau.reshape,
    flambeau.cat, flambeau.repeat_interleave, flambeau.narrow,
    "relu", "relu_", "clamp", "contiguous", "detach", "detach_", "flatten", "mean", "permute",
    "repeat", "repeat_interleave", "reshape", "squeeze", "squeeze_", "transpose", "unsqueeze",
    "unsqueeze_", "view")
FLOATING = ("flatten",)     # of these: they stay between dequantising and quantising
JOINS = (flambeau.cat, flambeau.stack)              # whose arguments are to have one scale
RELUS = (nn.ReLU, F.relu)                           # which join the product before them
# Functions of two quantised tensors.
BINARY: dict[Any, str] = {
    operator.add: "add", flambeau.add: "add", operator.iadd: "add", "add": "add", "add_": "add",
    operator.mul: "mul", flambeau.mul: "mul", operator.imul: "mul", "mul": "mul", "mul_": "mul",
    flambeau.matmul: "matmul"}
# Functions with a weight, and the names of the arguments after weight and bias.
WEIGHTED: dict[Any, tuple[str, ...]] = {
    F.linear: (), **dict.fromkeys((F.conv1d, F.conv2d, F.conv3d),
                                  ("stride", "padding", "dilation", "groups"))}
# Functions whose quantised form takes a scale for the result.
FUNCTIONS: dict[Any, Any] = {
    F.elu: ops.elu, F.hardswish: ops.hardswish, F.layer_norm: ops.layer_norm,
    F.instance_norm: ops.instance_norm, F.leaky_relu: ops.leaky_relu, F.dropout: ops.dropout}


def kind_of(node: Any, modules: dict[str, Any]) -> str | None:
    """"module", "table", "fixed", "shared", "binary", "weighted" or "function"; None for others."""
    key = type_of(node, modules)
    if node.op == "call_module":
        if key in MODULES or hasattr(modules[node.target], "weight_fake_quant"):
            return "module"
        return "table" if key in TABLES else "fixed" if key in FIXED else \
            "shared" if key in SHARED else None
    if node.op not in ("call_function", "call_method"):
        return None
    for name, known in (("fixed", FIXED), ("shared", SHARED), ("binary", BINARY),
                        ("weighted", WEIGHTED), ("function", FUNCTIONS)):
        if key in known:
            return name
    return None


def type_of(node: Any, modules: dict[str, Any]) -> Any:
    """The class of the module, the function, or the name of the method."""
    return type(modules[node.target]) if node.op == "call_module" else node.target


def only_user(node: Any) -> Any:
    """The step that alone uses the result; None if there are others or none."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def relu_behind(node: Any, modules: dict[str, Any]) -> Any:
    """The ReLU that alone uses the result of a function, if the two are one to quantisation."""
    user = only_user(node)
    if user is None or user.op not in ("call_module", "call_function"):
        return None
    known = (*RELUS, flambeau.relu) if node.target in BINARY else RELUS
    return user if type_of(user, modules) in known else None
