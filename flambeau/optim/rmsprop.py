"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
    KERNEL_DTYPES,
    RuleOptimizer,
    add_quotient_,
    add_scaled,
    add_square,
    apply_rule,
    check,
    check_lr,
    zero_step,
    zeros,
)

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(RuleOptimizer):
    r"""RMSprop: the gradient divided by the root of its running mean square.

    .. math::
        v_t = \alpha v_{t-1} + (1-\alpha)\, g_t^2, \qquad
        b_t = \mu b_{t-1} + \frac{g_t}{\sqrt{v_t - \bar g_t^2} + \epsilon}, \qquad
        \theta_t = \theta_{t-1} - \gamma\, b_t

    where :math:`\bar g_t` is the running mean of the gradient if `centered`, else 0, and
    :math:`\mu` the `momentum`. Hinton, *Neural networks for machine learning*, lecture 6e (2012);
    the centred form is from Graves, arXiv:1308.0850.

    Args:
        params: the parameters, or groups of them.
        lr, alpha, eps, momentum, centered: see above.
        weight_decay: :math:`\lambda`, which adds :math:`\lambda\theta` to the gradient.
        capturable: for accelerators only.
        foreach: accepted without effect on the numbers.
        maximize: climb instead of descending.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([w], lr=0.05)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    kernel_rule, kernel_dtypes = "rmsprop", KERNEL_DTYPES
    captured_on_xla = True, True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check("epsilon value", eps)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        check("alpha value", alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable})

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["square_avg"] = zeros(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(p)
        if group["centered"]:
            state["grad_avg"] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        alpha = group["alpha"]
        square = add_square(state["square_avg"].mul_(alpha), grad, 1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(group["eps"]) if root.requires_grad else root.add_(group["eps"])
        if group["momentum"] > 0:
            step = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, root)
            add_scaled(p, step, -group["lr"], inplace=True)
        else:
            add_quotient_(p, grad, root, -group["lr"])

    def kernel_state(self, group: dict[str, Any]) -> Sequence[str]:
        return ["square_avg", *["grad_avg"] * group["centered"],
                *["momentum_buffer"] * (group["momentum"] > 0)]

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        alpha = group["alpha"]
        return (alpha, 1 - alpha, group["eps"], group["momentum"], group["lr"],
                float(group["centered"]))


def rmsprop(params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor],
            grad_avgs: list[Tensor | None], momentum_buffer_list: list[Tensor | None],
            state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False,
            differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
            lr: float | Tensor, alpha: float, eps: float, weight_decay: float, momentum: float,
            centered: bool) -> None:
    """One step of :class:`RMSprop` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(RMSprop, params, grads, {
        "square_avg": square_avgs, "grad_avg": grad_avgs,
        "momentum_buffer": momentum_buffer_list, "step": state_steps},
        differentiable=differentiable, capturable=capturable, maximize=maximize, lr=lr,
        alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered)
