"""Adadelta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
    KERNEL_DTYPES,
    RuleOptimizer,
    add_scaled,
    add_square,
    apply_rule,
    check,
    check_lr,
    zero_step,
)

__all__ = ["Adadelta", "adadelta"]


class Adadelta(RuleOptimizer):
    r"""Adadelta: steps in the units of the parameter, from running means of steps and gradients.

    .. math::
        v_t = \rho v_{t-1} + (1-\rho)\, g_t^2, \qquad
        \Delta_t = \frac{\sqrt{u_{t-1}+\epsilon}}{\sqrt{v_t+\epsilon}}\, g_t, \qquad
        u_t = \rho u_{t-1} + (1-\rho)\, \Delta_t^2, \qquad
        \theta_t = \theta_{t-1} - \gamma \Delta_t

    Zeiler, *ADADELTA: an adaptive learning rate method* (2012), arXiv:1212.5701.

    Args:
        params: the parameters, or groups of them.
        lr, rho, eps: see above.
        weight_decay: :math:`\lambda`, which adds :math:`\lambda\theta` to the gradient.
        maximize: climb instead of descending.
        foreach: accepted without effect on the numbers.
        capturable: for accelerators only.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adadelta([w])
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.9968, -1.9968], requires_grad=True)
    """

    keeps, first_step = ("square_avg", "acc_delta"), staticmethod(zero_step)
    kernel_rule, kernel_dtypes = "adadelta", KERNEL_DTYPES
    captured_on_xla = False, False
    takes_complex = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None, *,
                 capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check("epsilon value", eps)
        check("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        if p.is_complex():
            grad, square, moved = map(flambeau.view_as_real, (grad, square, moved))
        add_square(square.mul_(rho), grad, 1 - rho)
        root = square.add(eps).sqrt_()
        delta = moved.add(eps).sqrt_()
        if delta.requires_grad:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        add_square(moved.mul_(rho), delta, 1 - rho)
        add_scaled(p, flambeau.view_as_complex(delta) if p.is_complex() else delta, -group["lr"],
                   inplace=True)

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        return group["rho"], 1 - group["rho"], group["eps"], group["lr"]


def adadelta(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor],
             acc_deltas: list[Tensor], state_steps: list[Tensor], capturable: bool = False,
             foreach: bool | None = None, differentiable: bool = False, has_complex: bool = False,
             *, lr: float | Tensor, rho: float, eps: float, weight_decay: float,
             maximize: bool) -> None:
    """One step of :class:`Adadelta` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(Adadelta, params, grads, {
        "square_avg": square_avgs, "acc_delta": acc_deltas, "step": state_steps},
        differentiable=differentiable, capturable=capturable, lr=lr, rho=rho, eps=eps,
        weight_decay=weight_decay, maximize=maximize)
