"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
    KERNEL_DTYPES,
    RuleOptimizer,
    apply_rule,
    check,
    check_lr,
    zero_step,
    zeros,
)

__all__ = ["ASGD", "asgd"]


class ASGD(RuleOptimizer):
    r"""Averaged stochastic gradient descent: descent, and the mean of the points it visits.

    .. math::
        \theta_t = (1 - \lambda\eta_t)\,\theta_{t-1} - \eta_t g_t, \qquad
        a_t = a_{t-1} + \mu_t (\theta_t - a_{t-1}), \\
        \eta_{t+1} = \frac{\gamma}{(1 + \lambda\gamma t)^{\alpha}}, \qquad
        \mu_{t+1} = \frac{1}{\max(1,\, t - t_0)}

    with :math:`\eta_1 = \gamma` (`lr`), :math:`\mu_1 = 1` and :math:`\lambda` the decay term
    `lambd`. The mean :math:`a` is kept in the state as `ax`. Polyak and Juditsky, *Acceleration
    of stochastic approximation by averaging* (1992).

    Args:
        params: the parameters, or groups of them.
        lr, lambd, alpha, t0: see above.
        weight_decay: which adds `weight_decay` times the parameter to the gradient.
        foreach: accepted without effect on the numbers.
        maximize: climb instead of descending.
        differentiable: let gradients flow through the step.
        capturable: for accelerators only.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.ASGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    capturable_state = ("params, mus, etas, and state_steps",) * 2

    keeps = ("ax",)
    kernel_rule, kernel_dtypes = "asgd", KERNEL_DTYPES
    numbers_depend_on_state = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4,
                 alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:
        check_lr(lr)
        check("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable})

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = zero_step()
        step = state["step"]
        state["eta"] = flambeau.as_tensor(float(group["lr"]), dtype=step.dtype).clone().detach()
        state["mu"] = flambeau.ones((), dtype=step.dtype)
        state["ax"] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        lambd = group["lambd"]
        t, eta, mu, mean = state["step"].item(), state["eta"].item(), state["mu"], state["ax"]
        p.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if mu.item() == 1:
            mean.copy_(p)
        else:
            mean.add_(p.sub(mean).mul_(mu))
        self._prepare_next(group, state, t)

    def _prepare_next(self, group: dict[str, Any], state: dict[str, Any], t: float) -> None:
        """The rate of the next step, and the share of its parameters in the mean."""
        lr = group["lr"]
        rate = float(lr / (1 + group["lambd"] * lr * t) ** group["alpha"])
        state["eta"].copy_(flambeau.as_tensor(rate))
        state["mu"].copy_(flambeau.as_tensor(1 / max(1, t - group["t0"])))

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        eta = state["eta"].item()
        return 1 - group["lambd"] * eta, eta, state["mu"].item()

    def step_by_kernel(self, params: list[np.ndarray], grads: list[np.ndarray],
                       group: dict[str, Any], states: list[dict[str, Any]]) -> bool:
        if not super().step_by_kernel(params, grads, group, states):
            return False
        for state in states:
            self._prepare_next(group, state, state["step"].item())
        return True


def asgd(params: list[Tensor], grads: list[Tensor], axs: list[Tensor], mus: list[Tensor],
         etas: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None,
         maximize: bool = False, differentiable: bool = False, capturable: bool = False,
         has_complex: bool = False, *, lambd: float, lr: float | Tensor, t0: float, alpha: float,
         weight_decay: float) -> None:
    """One step of :class:`ASGD` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(ASGD, params, grads, {"ax": axs, "mu": mus, "eta": etas, "step": state_steps},
               differentiable=differentiable, capturable=capturable, maximize=maximize,
               lambd=lambd, lr=lr, t0=t0, alpha=alpha, weight_decay=weight_decay)
