"""Activations, softmax and losses as arithmetic."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._decomp._register import stands_for, wide

_aten = flambeau.ops.aten
_where = flambeau.where

# ---- activations --------------------------------------------------------------------------------


@stands_for(_aten.hardtanh.default)
def hardtanh(self: Tensor, min_val: Any = -1, max_val: Any = 1) -> Tensor:
    return flambeau.clamp(self, min_val, max_val)


@stands_for(_aten.hardtanh_backward.default)
def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    return _where((self <= min_val) | (self >= max_val), 0.0, grad_output)


@stands_for(_aten.relu.default)
def relu(self: Tensor) -> Tensor:
    return _where(self <= 0, 0, self)


@stands_for(_aten.threshold.default)
def threshold(self: Tensor, threshold: Any, value: Any) -> Tensor:
    return _where(self <= threshold, value, self)


@stands_for(_aten.threshold_backward.default)
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Tensor:
    return _where(self <= threshold, 0, grad_output)


@stands_for(_aten.elu.default)
def elu(self: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    return _where(self > 0, self * scale, flambeau.expm1(self * input_scale) * (alpha * scale))


@stands_for(_aten.elu_backward.default)
def elu_backward(grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
                 self_or_result: Tensor) -> Tensor:
    slope = alpha * scale
    curve = (self_or_result + slope) if is_result \
        else flambeau.exp(self_or_result * input_scale) * slope
    return grad_output * _where(self_or_result <= 0, curve * input_scale, scale)


@stands_for(_aten.celu.default)
def celu(self: Tensor, alpha: Any = 1.0) -> Tensor:
    return _where(self > 0, self, flambeau.expm1(self / alpha) * alpha)


@stands_for(_aten.selu.default)
def selu(self: Tensor) -> Tensor:
    """Klambauer et al., Self-normalizing neural networks, 2017."""
    return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@stands_for(_aten.leaky_relu.default)
def leaky_relu(self: Tensor, negative_slope: Any = 0.01) -> Tensor:
    return _where(self > 0, self, self * negative_slope)


@stands_for(_aten.leaky_relu_backward.default)
def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: float,
                        self_is_result: bool) -> Tensor:
    return _where(self > 0, grad_output, grad_output * negative_slope)


@stands_for(_aten.hardsigmoid.default)
def hardsigmoid(self: Tensor) -> Tensor:
    return flambeau.clamp(self + 3, 0, 6) / 6


@stands_for(_aten.hardsigmoid_backward.default)
def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return _where((self > -3) & (self < 3), grad_output / 6, 0.0)


@stands_for(_aten.hardswish_backward.default)
def hardswish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return _where(self <= -3, 0.0, _where(self < 3, grad_output * (self / 3 + 0.5), grad_output))


@stands_for(_aten.hardshrink.default)
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    return _where((self >= -lambd) & (self <= lambd), 0, self)


@stands_for(_aten.softshrink.default)
def softshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    return _where(self.abs() > lambd, self - self.sign() * lambd, self * 0)


@stands_for(_aten.gelu.default)
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + flambeau.tanh(inner))
    return self * 0.5 * (1 + flambeau.erf(self * math.sqrt(0.5)))


@stands_for(_aten.gelu_backward.default)
def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        scale = math.sqrt(2 / math.pi)
        t = flambeau.tanh(scale * (self + 0.044715 * self * self * self))
        inner = scale * (1 + 3 * 0.044715 * self * self)
        return grad_output * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * inner)
    density = flambeau.exp(self * self * -0.5) / math.sqrt(2 * math.pi)
    return grad_output * (0.5 * (1 + flambeau.erf(self * math.sqrt(0.5))) + self * density)


@stands_for(_aten.log_sigmoid_forward.default)
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    z = flambeau.exp(-self.abs())
    return flambeau.clamp(self, max=0) - flambeau.log1p(z), z


@stands_for(_aten.log_sigmoid_backward.default)
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    z = flambeau.exp(-self.abs())
    fraction = z / (1 + z)
    return grad_output * _where(self < 0, 1 - fraction, fraction)


@stands_for(_aten.sigmoid_backward.default)
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (output * (1 - output)).conj_physical()


@stands_for(_aten.tanh_backward.default)
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output).conj_physical()


@stands_for(_aten.silu_backward.default)
def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    sigmoid = 1 / (1 + flambeau.exp(-self))
    return grad_output * sigmoid * (1 + self * (1 - sigmoid))


@stands_for(_aten.mish_backward.default)
def mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    t = flambeau.tanh(_softplus(self))
    return grad_output * (t + self * flambeau.sigmoid(self) * (1 - t * t))


def _softplus(x: Tensor) -> Tensor:
    return flambeau.clamp(x, min=0) + flambeau.log1p(flambeau.exp(-x.abs()))


@stands_for(_aten.softplus_backward.default)
def softplus_backward(grad_output: Tensor, self: Tensor, beta: Any, threshold: Any) -> Tensor:
    z = flambeau.exp(self * beta)
    return _where(self * beta > threshold, grad_output, grad_output * z / (z + 1))


@stands_for(_aten.glu_backward.default)
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    half = self.shape[dim] // 2
    first, gate = self.narrow(dim, 0, half), flambeau.sigmoid(self.narrow(dim, half, half))
    return flambeau.cat([grad_output * gate, grad_output * gate * (1 - gate) * first], dim)


@stands_for(_aten.logit.default)
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    p = self if eps is None else flambeau.clamp(self, eps, 1 - eps)
    return flambeau.log(p / (1 - p))


@stands_for(_aten.logit_backward.default)
def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    low = 0.0 if eps is None else eps
    inside = (self >= low) & (self <= 1 - low)
    return _where(inside, grad_output / (self * (1 - self)), math.nan if eps is None else 0.0)


# ---- softmax ------------------------------------------------------------------------------------

def _shifted(x: Tensor, dim: int, half_to_float: bool) -> tuple[Tensor, Any]:
    own = x.dtype
    x = wide(x)
    return (x - flambeau.amax(x, dim, True) if x.numel() else x), x.dtype if half_to_float else own


@stands_for(_aten._softmax.default, in_float=False)
def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shifted, dtype = _shifted(self, dim, half_to_float)
    powers = flambeau.exp(shifted)
    return (powers / powers.sum(dim, keepdim=True)).to(dtype)


@stands_for(_aten._log_softmax.default, in_float=False)
def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shifted, dtype = _shifted(self, dim, half_to_float)
    return (shifted - shifted.exp().sum(dim, keepdim=True).log()).to(dtype)


@stands_for(_aten._softmax_backward_data.default)
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
                           ) -> Tensor:
    weighted = grad_output * output
    return (weighted - output * weighted.sum(dim, keepdim=True)).to(input_dtype)


@stands_for(_aten._log_softmax_backward_data.default)
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
                               ) -> Tensor:
    total = grad_output.sum(dim, keepdim=True)
    return (grad_output - flambeau.exp(output) * total).to(input_dtype)


# ---- losses -------------------------------------------------------------------------------------

_MEAN, _SUM = 1, 2


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss.mean() if reduction == _MEAN else loss.sum() if reduction == _SUM else loss


def _share(grad: Tensor, of: Tensor, reduction: int) -> Tensor:
    return grad / of.numel() if reduction == _MEAN else grad


@stands_for(_aten.mse_loss.default)
def mse_loss(self: Tensor, target: Tensor, reduction: int = _MEAN) -> Tensor:
    return _reduced((self - target) ** 2, reduction)


@stands_for(_aten.mse_loss_backward.default)
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return 2 * (self - target) * _share(grad_output, self, reduction)


@stands_for(_aten.smooth_l1_loss.default)
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int = _MEAN, beta: float = 1.0
                   ) -> Tensor:
    loss = (self - target).abs()
    if beta:
        loss = _where(loss < beta, 0.5 * loss * loss / beta, loss - 0.5 * beta)
    return _reduced(loss, reduction)


@stands_for(_aten.smooth_l1_loss_backward.default)
def smooth_l1_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int,
                            beta: float) -> Tensor:
    x = self - target
    slope = _where(x.abs() < beta, x / beta, x.sign()) if beta else x.sign()
    return slope * _share(grad_output, self, reduction)


@stands_for(_aten.huber_loss.default)
def huber_loss(self: Tensor, target: Tensor, reduction: int = _MEAN, delta: float = 1.0) -> Tensor:
    distance = (self - target).abs()
    return _reduced(_where(distance <= delta, 0.5 * distance * distance,
                           delta * (distance - 0.5 * delta)), reduction)


@stands_for(_aten.huber_loss_backward.default)
def huber_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int,
                        delta: float) -> Tensor:
    return flambeau.clamp(self - target, -delta, delta) * _share(grad_output, self, reduction)


@stands_for(_aten.soft_margin_loss.default)
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = _MEAN) -> Tensor:
    return _reduced(flambeau.log1p(flambeau.exp(-self * target)), reduction)


@stands_for(_aten.soft_margin_loss_backward.default)
def soft_margin_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor,
                              reduction: int = _MEAN) -> Tensor:
    return target * _share(grad_output, self, reduction) * (
        flambeau.sigmoid(target * self) - 1)


@stands_for(_aten.binary_cross_entropy.default)
def binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None,
                         reduction: int = _MEAN) -> Tensor:
    least = -100                            # of a logarithm, so that no loss is infinite
    loss = (target - 1) * flambeau.log1p(-self).clamp(min=least) \
        - target * flambeau.log(self).clamp(min=least)
    return _reduced(loss if weight is None else loss * weight, reduction)


@stands_for(_aten.binary_cross_entropy_backward.default)
def binary_cross_entropy_backward(grad_output: Tensor, self: Tensor, target: Tensor,
                                  weight: Tensor | None = None, reduction: int = _MEAN) -> Tensor:
    found = grad_output * (self - target) / flambeau.clamp(self * (1 - self), min=1e-12)
    return _share(found if weight is None else found * weight, self, reduction)
