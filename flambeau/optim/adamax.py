"""Adamax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
    KERNEL_DTYPES,
    RuleOptimizer,
    add_quotient_,
    apply_rule,
    check,
    check_betas,
    check_lr,
)

__all__ = ["Adamax", "adamax"]


class Adamax(RuleOptimizer):
    r"""Adamax: Adam with the infinity norm of past gradients in place of their square mean.

    .. math::
        m_t = \beta_1 m_{t-1} + (1-\beta_1)\, g_t, \qquad
        u_t = \max(\beta_2 u_{t-1},\, |g_t| + \epsilon), \qquad
        \theta_t = \theta_{t-1} - \frac{\gamma}{1-\beta_1^t}\, \frac{m_t}{u_t}

    Kingma and Ba, *Adam: a method for stochastic optimization* (2014), section 7.1,
    arXiv:1412.6980. The arguments are those of :class:`flambeau.optim.Adam`.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adamax([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    read_first = ("betas",)
    keeps = ("exp_avg", "exp_inf")
    kernel_rule, kernel_dtypes = "adamax", KERNEL_DTYPES

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check("epsilon value", eps)
        check_betas(betas)
        check("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable})

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        highest, size = state["exp_inf"].mul_(beta2), grad.abs().add_(group["eps"])
        if highest.requires_grad or size.requires_grad:
            highest.copy_(flambeau.maximum(highest.clone(), size))
        else:
            flambeau.maximum(highest, size, out=highest)
        rate = group["lr"] / (1 - beta1**state["step"].item())
        add_quotient_(p, mean, highest, -rate)

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        beta1, beta2 = group["betas"]
        return 1 - beta1, beta2, group["eps"], group["lr"] / (1 - beta1**t)


def adamax(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
           exp_infs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
           maximize: bool = False, differentiable: bool = False, capturable: bool = False,
           has_complex: bool = False, *, eps: float, beta1: float | Tensor, beta2: float | Tensor,
           lr: float | Tensor, weight_decay: float) -> None:
    """One step of :class:`Adamax` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(Adamax, params, grads, {
        "exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps},
        differentiable=differentiable, capturable=capturable, maximize=maximize, eps=eps,
        betas=(beta1, beta2), lr=lr, weight_decay=weight_decay)
