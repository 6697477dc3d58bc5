"""Activation functions, element by element unless a dimension is named."""

from __future__ import annotations

import warnings

from flambeau import Tensor
from flambeau._support.own_methods import adopt
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.activation.rectifiers import *
from flambeau.nn.modules.activation.smooth import *
from flambeau.nn.modules.activation.softmax import LogSoftmax, Softmax, Softmax2d, Softmin
from flambeau.nn.modules.attention import MultiheadAttention
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish",
           "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention",
           "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]

adopt(globals(), ("nn.modules.activation.", "nn.modules.attention"))
