"""RAdam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
    KERNEL_DTYPES,
    RuleOptimizer,
    add_square,
    apply_rule,
    check,
    check_betas,
    check_lr,
)

__all__ = ["RAdam", "radam"]


class RAdam(RuleOptimizer):
    r"""RAdam: Adam that waits until the variance of its step size can be trusted.

    .. math::
        \rho_\infty = \frac{2}{1-\beta_2} - 1, \qquad
        \rho_t = \rho_\infty - \frac{2 t \beta_2^t}{1-\beta_2^t}, \qquad
        \hat m_t = \frac{m_t}{1-\beta_1^t}

    Where :math:`\rho_t > 5` the step is

    .. math::
        \theta_t = \theta_{t-1} - \gamma\, r_t\, \hat m_t\,
            \frac{\sqrt{1-\beta_2^t}}{\sqrt{v_t} + \epsilon}, \qquad
        r_t^2 = \frac{(\rho_t-4)(\rho_t-2)\rho_\infty}{(\rho_\infty-4)(\rho_\infty-2)\rho_t},

    and before that :math:`\theta_t = \theta_{t-1} - \gamma \hat m_t`; :math:`m` and :math:`v`
    are as in :class:`flambeau.optim.Adam`. Liu et al., *On the variance of the adaptive learning
    rate and beyond* (2019), arXiv:1908.03265. The arguments are those of
    :class:`flambeau.optim.Adam`.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.RAdam([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    read_first = ("betas",)
    decays_reals = True
    keeps = ("exp_avg", "exp_avg_sq")
    kernel_rule, kernel_dtypes = "radam", KERNEL_DTYPES

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        check("epsilon value", eps)
        check_betas(betas)
        check("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable})

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        t = state["step"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_square(state["exp_avg_sq"].mul_(beta2), grad, 1 - beta2)
        step = mean / (1 - beta1**t) * group["lr"]
        scale = _rectification(beta2, t)
        if scale:
            root = square.sqrt()
            root = root.add(group["eps"]) if root.requires_grad else root.add_(group["eps"])
            step = step * (scale / root)
        p.add_(step, alpha=-1.0)

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        beta1, beta2 = group["betas"]
        return (1 - beta1, beta2, 1 - beta2, group["eps"], 1 - beta1**t,
                _rectification(beta2, t), group["lr"])


def _rectification(beta2: float, t: float) -> float:
    """The factor of the adaptive step, with the bias correction; 0 while the variance is unknown.
    """
    correction = 1 - beta2**t
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * t * beta2**t / correction
    if rho <= 5.0:
        return 0.0
    rectify = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))**0.5
    return rectify * correction**0.5


def radam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
          decoupled_weight_decay: bool = False, foreach: bool | None = None,
          differentiable: bool = False, capturable: bool = False, has_complex: bool = False,
          maximize: bool = False, *, beta1: float | Tensor, beta2: float | Tensor,
          lr: float | Tensor, weight_decay: float, eps: float) -> None:
    """One step of :class:`RAdam` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(RAdam, params, grads, {
        "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps},
        differentiable=differentiable, capturable=capturable, maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay, betas=(beta1, beta2), lr=lr,
        weight_decay=weight_decay, eps=eps)
