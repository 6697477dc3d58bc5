"""Adagrad."""

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
    add_square,
    apply_rule,
    check,
    check_lr,
    new_step,
)

__all__ = ["Adagrad", "adagrad"]


class Adagrad(RuleOptimizer):
    r"""Adagrad: each coordinate's step shrinks with the squared gradients it has seen.

    .. math::
        s_t = s_{t-1} + g_t^2, \qquad
        \theta_t = \theta_{t-1} - \frac{\gamma}{1 + (t-1)\eta}\, \frac{g_t}{\sqrt{s_t} + \epsilon}

    with :math:`\eta` the `lr_decay` and :math:`s_0` the `initial_accumulator_value`. Duchi,
    Hazan and Singer, *Adaptive subgradient methods for online learning and stochastic
    optimization* (2011). Sparse gradients touch only the rows that they hold.

    Args:
        params: the parameters, or groups of them.
        lr, lr_decay, initial_accumulator_value, eps: see above.
        weight_decay: :math:`\lambda`, which adds :math:`\lambda\theta` to the gradient.
        maximize: climb instead of descending.
        foreach, fused: accepted without effect on the numbers.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adagrad([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    takes_sparse = True

    keeps = ("sum",)
    kernel_rule, kernel_dtypes = "adagrad", KERNEL_DTYPES

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0,
                 weight_decay: float = 0, initial_accumulator_value: float = 0, eps: float = 1e-10,
                 foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        check_lr(lr)
        check("lr_decay value", lr_decay)
        check("weight_decay value", weight_decay)
        check("initial_accumulator_value value", initial_accumulator_value)
        check("epsilon value", eps)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused})
        for group in self.param_groups:
            for p in group["params"]:
                self.init_state(p, group, self.state[p])

    def share_memory(self) -> None:
        """Move the sums to shared memory, for training from several processes. Each process counts
        its own steps."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        start = group["initial_accumulator_value"]
        state["step"] = new_step()
        state["sum"] = flambeau.full_like(p, complex(start, start) if p.is_complex() else start,
                                          memory_format=flambeau.preserve_format)

    def _decay(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        if grad.is_sparse and group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        return super()._decay(p, grad, group)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        t = state["step"].item()
        lr = group["lr"] / (1 + (t - 1) * group["lr_decay"])
        total = state["sum"]
        if grad.is_sparse:
            grad = grad.coalesce()
            rows = tuple(grad.indices())
            values = grad.values()
            seen = total[rows] + values * values
            total[rows] = seen
            p[rows] = p[rows] - lr * values / (seen.sqrt() + group["eps"])
        else:
            root = add_square(total, grad, 1).sqrt()
            root = root + group["eps"] if root.requires_grad else root.add_(group["eps"])
            add_quotient_(p, grad, root, -lr)

    def _check_fused(self, params: list[Tensor], grads: list[Tensor]) -> None:
        super()._check_fused(params[:1], grads[:1])
        if any(p.is_complex() or g.is_sparse for p, g in zip(params, grads, strict=True)):
            raise RuntimeError("`fused` does not support sparse grad or complex param")

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        return group["lr"] / (1 + (t - 1) * group["lr_decay"]), group["eps"]


def adagrad(params: list[Tensor], grads: list[Tensor], state_sums: list[Tensor],
            state_steps: list[Tensor], fused: bool | None = None, grad_scale: Tensor | None = None,
            found_inf: Tensor | None = None, has_sparse_grad: bool = False,
            foreach: bool | None = None, differentiable: bool = False, has_complex: bool = False, *,
            lr: float | Tensor, weight_decay: float, lr_decay: float, eps: float,
            maximize: bool) -> None:
    """One step of :class:`Adagrad` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(Adagrad, params, grads, {"sum": state_sums, "step": state_steps}, fused=fused,
               grad_scale=grad_scale, found_inf=found_inf, differentiable=differentiable, lr=lr,
               weight_decay=weight_decay, lr_decay=lr_decay, eps=eps, maximize=maximize)
