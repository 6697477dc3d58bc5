"""Muon."""

from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import RuleOptimizer, apply_rule, check_least

__all__ = ["Muon", "muon"]


class Muon(RuleOptimizer):
    r"""Muon: momentum whose matrix is made (nearly) orthogonal before the step.

    .. math::
        b_t = \mu b_{t-1} + (1-\mu) g_t, \qquad
        u_t = \begin{cases} (1-\mu)\, g_t + \mu\, b_t & \text{nesterov} \\ b_t & \text{else}
        \end{cases}, \qquad
        \theta_t = (1-\gamma\lambda)\theta_{t-1} - \gamma' \operatorname{orthogonal}(u_t)

    The orthogonal factor is approached by `ns_steps` Newton-Schulz iterations in bfloat16,
    :math:`X \leftarrow aX + (bA + cA^2)X` with :math:`A = XX^T` and :math:`(a, b, c)` the
    `ns_coefficients`. The rate :math:`\gamma'` is `lr` times :math:`\sqrt{\max(1, m/n)}` for an
    m×n matrix (`adjust_lr_fn="original"`, also for None), or :math:`0.2\sqrt{\max(m, n)}`
    (`"match_rms_adamw"`). For the matrices of hidden layers; use another optimiser for the rest.

    Jordan et al., *Muon: an optimizer for hidden layers in neural networks* (2024); the second
    rate is from Liu et al., arXiv:2502.16982.

    Example::

        >>> import flambeau as torch
        >>> w = torch.eye(2, requires_grad=True)
        >>> optimizer = torch.optim.Muon([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> bool((w.diag() < 0.95).all())
        True
    """

    elementwise = False

    takes_complex = refuses_complex = True
    decoupled_weight_decay = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, weight_decay: float = 0.1,
                 momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_least("Learning rate should be >= 0 but is: ", lr)
        check_least("momentum should be >= 0 but is: ", momentum)
        check_least("weight decay should be >= 0 but is: ", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a "
                                     f"parameter with size: {p.size()}")

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["momentum_buffer"] = flambeau.zeros_like(p.grad)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        momentum = group["momentum"]
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        direction = _orthogonal(direction, group["ns_coefficients"], group["ns_steps"],
                                group["eps"])
        p.add_(direction, alpha=-group["lr"] * _rate(group["adjust_lr_fn"], *p.shape))


def muon(params: list[Tensor], grads: list[Tensor], muon_momentum_bufs: list[Tensor], *,
         foreach: bool | None = None, lr: float | Tensor, weight_decay: float, momentum: float,
         nesterov: bool, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float,
         adjust_lr_fn: str | None, has_complex: bool) -> None:
    """One step of :class:`Muon` on lists of parameters, gradients and momentum buffers, in
    place."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    apply_rule(Muon, params, grads, {"momentum_buffer": muon_momentum_bufs}, lr=lr,
               weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
               ns_coefficients=ns_coefficients, ns_steps=ns_steps, eps=eps,
               adjust_lr_fn=adjust_lr_fn)


def _rate(how: str | None, rows: int, columns: int) -> float:
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int,
                eps: float) -> Tensor:
    """The nearest orthogonal matrix, roughly: singular values go to about 1."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        polynomial = flambeau.addmm(gram, gram, gram, beta=b, alpha=c)
        x = flambeau.addmm(x, polynomial, x, beta=a)
    return x.T if tall else x
