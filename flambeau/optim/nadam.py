"""NAdam."""

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
    add_quotient_,
    add_square,
    apply_rule,
    check,
    check_betas,
    check_lr,
    new_step,
    zeros,
)

__all__ = ["NAdam", "nadam"]


class NAdam(RuleOptimizer):
    r"""NAdam: Adam with Nesterov's momentum.

    .. math::
        \mu_t &= \beta_1 \big(1 - \tfrac12\, 0.96^{\,t\psi}\big), \qquad
        M_t = \prod_{i=1}^{t} \mu_i \\
        \theta_t &= \theta_{t-1} - \gamma \Big(
            \frac{1-\mu_t}{1-M_t}\, g_t + \frac{\mu_{t+1}}{1-M_t\,\mu_{t+1}}\, m_t \Big)
            \Big/ \Big(\sqrt{v_t/(1-\beta_2^t)} + \epsilon\Big)

    with :math:`m` and :math:`v` as in :class:`flambeau.optim.Adam` and :math:`\psi` the
    `momentum_decay`. Dozat, *Incorporating Nesterov momentum into Adam* (2016).
    Other arguments are those of :class:`flambeau.optim.Adam`.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.NAdam([w], lr=0.5)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> bool(w.abs().sum() < 2)
        True
    """

    capturable_state = ("params, mu_products and state_steps",
                        "params, mu_products, and state_steps")

    read_first = ("betas",)
    decays_reals = True
    keeps = ("exp_avg", "exp_avg_sq")
    kernel_rule, kernel_dtypes = "nadam", KERNEL_DTYPES
    numbers_depend_on_state = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        check("epsilon value", eps)
        check_betas(betas)
        check("weight_decay value", weight_decay)
        check("momentum_decay value", momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for kept in self.state.values():
            if "mu_product" in kept and not isinstance(kept["mu_product"], flambeau.Tensor):
                kept["mu_product"] = new_step(kept["mu_product"])

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = new_step()
        state["mu_product"] = new_step(1.0)
        state["exp_avg"] = zeros(p)
        state["exp_avg_sq"] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        lr = group["lr"]
        t = state["step"].item()
        mu, mu_next = _momenta(group, t)
        product = state["mu_product"].mul_(mu)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_square(state["exp_avg_sq"].mul_(beta2), grad, 1 - beta2)
        root = square.div(1 - beta2**t).sqrt()
        tracked = product.requires_grad or root.requires_grad
        following = (product if tracked else product.item()) * mu_next
        root = root.add(group["eps"]) if tracked else root.add_(group["eps"])
        add_quotient_(p, grad, root, -lr * (1 - mu) / (1 - (product if tracked
                                                            else product.item())))
        add_quotient_(p, mean, root, -lr * mu_next / (1 - following))

    def kernel_numbers(self, group: dict[str, Any], t: float,
                       state: dict[str, Any] | None) -> Sequence[float]:
        beta1, beta2 = group["betas"]
        mu, mu_next = _momenta(group, t)
        lr, product = group["lr"], (state["mu_product"] * mu).item()
        return (1 - beta1, beta2, 1 - beta2, group["eps"], 1 - beta2**t,
                lr * (1 - mu) / (1 - product), lr * mu_next / (1 - product * mu_next))

    def step_by_kernel(self, params: list[np.ndarray], grads: list[np.ndarray],
                       group: dict[str, Any], states: list[dict[str, Any]]) -> bool:
        if not super().step_by_kernel(params, grads, group, states):
            return False
        for state in states:
            state["mu_product"].mul_(_momenta(group, state["step"].item())[0])
        return True


def _momenta(group: dict[str, Any], t: float) -> list[float]:
    """The momentum of step number `t`, and of the next."""
    beta1, decay = group["betas"][0], group["momentum_decay"]
    return [beta1 * (1 - 0.5 * 0.96 ** (step * decay)) for step in (t, t + 1)]


def nadam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], mu_products: list[Tensor], state_steps: list[Tensor],
          decoupled_weight_decay: bool = False, foreach: bool | None = None,
          capturable: bool = False, differentiable: bool = False, has_complex: bool = False,
          maximize: bool = False, *, beta1: float | Tensor, beta2: float | Tensor,
          lr: float | Tensor, weight_decay: float, momentum_decay: float, eps: float) -> None:
    """One step of :class:`NAdam` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(NAdam, params, grads, {
        "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products,
        "step": state_steps}, differentiable=differentiable, capturable=capturable,
        maximize=maximize, decoupled_weight_decay=decoupled_weight_decay, betas=(beta1, beta2),
        lr=lr, weight_decay=weight_decay, momentum_decay=momentum_decay, eps=eps)
