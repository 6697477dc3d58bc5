"""Rprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import KERNEL_DTYPES, RuleOptimizer, apply_rule, check_lr, zero_step, zeros

__all__ = ["Rprop", "rprop"]


class Rprop(RuleOptimizer):
    r"""Resilient backpropagation: only the signs of the gradients count.

    Each coordinate has a step size :math:`\eta`. Where the gradient kept its sign, the step size
    grows by the factor :math:`\eta^+`; where the sign changed, it shrinks by :math:`\eta^-` and
    the coordinate rests for one step (its gradient counts as 0):

    .. math::
        \eta_t = \operatorname{clamp}(\eta_{t-1}\,\eta^{\pm},\, \eta_{min},\, \eta_{max}), \qquad
        \theta_t = \theta_{t-1} - \operatorname{sign}(g_t)\,\eta_t

    For full batches. Riedmiller and Braun, *A direct adaptive method for faster backpropagation
    learning* (1993).

    Args:
        params: the parameters, or groups of them.
        lr: the first step size of all coordinates.
        etas: the pair :math:`(\eta^-, \eta^+)`.
        step_sizes: the least and the largest step size.
        capturable: for accelerators only.
        foreach: accepted without effect on the numbers.
        maximize: climb instead of descending.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Rprop([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    read_first = ("etas",)
    keeps = ("prev", "step_size")
    kernel_rule, kernel_dtypes = "rprop", KERNEL_DTYPES
    captured_on_xla = True, True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2,
                 etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr = float(group["lr"])
        state["step"] = zero_step()
        state["prev"] = zeros(p)
        state["step_size"] = flambeau.full_like(p.grad, complex(lr, lr) if p.is_complex() else lr,
                                                memory_format=flambeau.preserve_format)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        shrink, grow = group["etas"]
        factor = grad.mul(state["prev"]).sign()
        factor[factor.gt(0)] = grow
        factor[factor.lt(0)] = shrink
        factor[factor.eq(0)] = 1
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.clone(memory_format=flambeau.preserve_format)
        grad[factor.eq(shrink)] = 0
        p.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        return (*group["etas"], *group["step_sizes"])


def rprop(params: list[Tensor], grads: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor],
          state_steps: list[Tensor], foreach: bool | None = None, capturable: bool = False,
          maximize: bool = False, differentiable: bool = False, has_complex: bool = False, *,
          step_size_min: float, step_size_max: float, etaminus: float, etaplus: float) -> None:
    """One step of :class:`Rprop` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(Rprop, params, grads, {
        "prev": prevs, "step_size": step_sizes, "step": state_steps},
        differentiable=differentiable, capturable=capturable, maximize=maximize, lr=0.0,
        step_sizes=(step_size_min, step_size_max), etas=(etaminus, etaplus))
