"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.lazy.modules import stand_in
from flambeau._support.source_locations import mark_written
from flambeau.core.tensor import arrays_of
from flambeau.kernels.network import optimizers as kernels
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import (
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

__all__ = ["Adam", "adam"]


class Adam(RuleOptimizer):
    r"""Adam: steps scaled by running means of the gradient and of its square.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1-\beta_1)\, g_t, \qquad
        v_t = \beta_2 v_{t-1} + (1-\beta_2)\, g_t^2 \\
        \theta_t &= \theta_{t-1} - \gamma\,
            \frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + \epsilon}

    where :math:`g_t` is the gradient plus :math:`\lambda\theta_{t-1}`, :math:`\gamma` is `lr` and
    :math:`\lambda` `weight_decay`. With `decoupled_weight_decay` the decay acts on the parameter
    instead, :math:`\theta_{t-1}` shrinking by :math:`\gamma\lambda\theta_{t-1}` before the step.
    With `amsgrad`, the largest :math:`v` so far replaces :math:`v_t` in the step.

    Kingma and Ba, *Adam: a method for stochastic optimization* (2014), arXiv:1412.6980; the
    `amsgrad` variant is from Reddi et al., *On the convergence of Adam and beyond* (2018).

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay: see above.
        maximize: climb instead of descending.
        foreach, fused: accepted; the steps of all parameters are always taken together.
        capturable: for accelerators only.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    kernel_dtypes = (flambeau.float32, flambeau.float64)
    sparse_hint = ", please consider SparseAdam instead"
    read_first = ("betas",)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        if foreach and not capturable and isinstance(lr, Tensor):
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        check("epsilon value", eps)
        check_betas(betas)
        check("weight_decay value", weight_decay)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if foreach and not capturable:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for "
                                     "capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay})

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = new_step()
        state["exp_avg"] = zeros(p)
        state["exp_avg_sq"] = zeros(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_square(state["exp_avg_sq"].mul_(beta2), grad, 1 - beta2)
        t = state["step"].item()
        if group["amsgrad"]:
            highest = state["max_exp_avg_sq"]
            if highest.requires_grad or square.requires_grad:
                square = highest.copy_(flambeau.maximum(highest.clone(), square))
            else:
                square = flambeau.maximum(highest, square, out=highest)
        root = (square.sqrt() / (1 - beta2**t) ** 0.5).add_(group["eps"])
        add_quotient_(p, mean, root, -(group["lr"] / (1 - beta1**t)))

    def step_by_kernel(self, params: list[np.ndarray], grads: list[np.ndarray],
                       group: dict[str, Any], states: list[dict[str, Any]]) -> bool:
        names = ["exp_avg", "exp_avg_sq", "step"] + ["max_exp_avg_sq"] * group["amsgrad"]
        kept = {name: [state[name] for state in states] for name in names}
        arrays = {name: arrays_of(tensors) for name, tensors in kept.items()}
        beta1, beta2 = group["betas"]
        kernels.adam_step(
            params, grads, arrays["exp_avg"], arrays["exp_avg_sq"],
            arrays.get("max_exp_avg_sq", []), arrays["step"], group["lr"], beta1, beta2,
            group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
            group["maximize"])
        for tensors in kept.values():
            mark_written(tensors)
        return True

    def _rule_name(self) -> str:
        return "Adam"


class AdamW(Adam):
    r"""Adam with decoupled weight decay: the decay never enters the running means.

    .. math::
        \theta_t = (1 - \gamma\lambda)\,\theta_{t-1} - \gamma\,
            \frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + \epsilon}

    with :math:`m` and :math:`v` as in :class:`Adam`. Loshchilov and Hutter, *Decoupled weight
    decay regularization* (2017), arXiv:1711.05101. The arguments are those of :class:`Adam`.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.AdamW([w], lr=0.5, weight_decay=0.2)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.4000, -1.3000], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
         exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
         foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
         fused: bool | None = None, grad_scale: Tensor | None = None,
         found_inf: Tensor | None = None, has_complex: bool = False,
         decoupled_weight_decay: bool = False, *, amsgrad: bool, beta1: float | Tensor,
         beta2: float | Tensor, lr: float | Tensor, weight_decay: float, eps: float,
         maximize: bool) -> None:
    """One step of :class:`Adam` on lists of parameters, gradients and what is kept for them, in
    place."""
    apply_rule(Adam, params, grads, {
        "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "max_exp_avg_sq": max_exp_avg_sqs,
        "step": state_steps}, fused=fused, grad_scale=grad_scale, found_inf=found_inf,
        differentiable=differentiable, capturable=capturable, amsgrad=amsgrad,
        betas=(beta1, beta2), lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay)


def adamw(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
          exp_avg_sqs: list[Tensor], max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor],
          foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
          fused: bool | None = None, grad_scale: Tensor | None = None,
          found_inf: Tensor | None = None, has_complex: bool = False, *, amsgrad: bool,
          beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor, weight_decay: float,
          eps: float, maximize: bool) -> None:
    """One step of :class:`AdamW`, as :func:`adam` takes one of :class:`Adam`."""
    adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable,
         differentiable, fused, grad_scale, found_inf, has_complex, True, amsgrad=amsgrad,
         beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize)
stand_in("optim.adamw", adamw)
