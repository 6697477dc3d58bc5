"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.source_locations import mark_written
from flambeau.core.tensor import arrays_of
from flambeau.kernels.network import optimizers as kernels
from flambeau.kernels.refused import refuse
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import RuleOptimizer, add_scaled, apply_rule

__all__ = ["SGD", "sgd"]


class SGD(RuleOptimizer):
    r"""Stochastic gradient descent, with momentum if asked for.

    .. math::
        b_t = \mu\, b_{t-1} + (1 - \tau)\, g_t, \qquad
        \theta_t = \theta_{t-1} - \gamma\, d_t, \qquad
        d_t = \begin{cases} g_t + \mu\, b_t & \text{nesterov} \\ b_t & \text{else} \end{cases}

    where :math:`g_t` is the gradient plus :math:`\lambda\theta_{t-1}`, :math:`\gamma` is `lr`,
    :math:`\mu` `momentum`, :math:`\tau` `dampening`, :math:`\lambda` `weight_decay`, and
    :math:`b_1 = g_1`. Without momentum, :math:`d_t = g_t`.

    Momentum as in Sutskever et al., *On the importance of initialization and momentum in deep
    learning* (2013), but with the learning rate outside of the buffer, so that changing it acts
    at once.

    Args:
        params: the parameters, or groups of them.
        lr: learning rate.
        momentum, dampening, weight_decay: see above.
        nesterov: look ahead along the momentum.
        maximize: climb instead of descending.
        foreach, fused: accepted; the steps of all parameters are always taken together.
        differentiable: let gradients flow through the step.

    Example::

        >>> import flambeau as torch
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.4600, -0.9200], requires_grad=True)
    """

    takes_sparse = takes_complex = lists_are_differentiable = True
    kernel_dtypes = (flambeau.float32, flambeau.float64)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0,
                 dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("learning rate", lr), ("momentum value", momentum),
                            ("weight_decay value", weight_decay)):
            if value < 0.0:             # nan is none of PyTorch's errors here
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused})

    def keeps_state(self, group: dict[str, Any]) -> bool:
        return group["momentum"] != 0

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = (
                    grad.clone() if grad.requires_grad else grad.detach().clone())
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        add_scaled(p, grad, -group["lr"], inplace=True)

    def _check_fused(self, params: list[Tensor], grads: list[Tensor]) -> None:
        super()._check_fused(params[:1], grads[:1])
        if any(grad.is_sparse for grad in grads):
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        for p in params:
            refuse(p._array, "c", "fused_sgd_kernel")

    def step_by_kernel(self, params: list[np.ndarray], grads: list[np.ndarray],
                       group: dict[str, Any], states: list[dict[str, Any]]) -> bool:
        momentum = group["momentum"]
        buffers = []
        if momentum != 0:
            buffers = [state.get("momentum_buffer") for state in states]
            if any(buffer is None for buffer in buffers):
                return False
        kernels.sgd_step(
            params, grads, arrays_of(buffers), group["lr"], momentum, group["dampening"],
            group["weight_decay"], group["nesterov"], group["maximize"])
        mark_written(buffers)
        return True


def sgd(params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Tensor | None],
        has_sparse_grad: bool = False, foreach: bool | None = None, fused: bool | None = None,
        grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float,
        momentum: float, lr: float | Tensor, dampening: float, nesterov: bool,
        maximize: bool) -> None:
    """One step of :class:`SGD` on lists of parameters, gradients and momentum buffers (None where
    there is none yet), in place."""
    apply_rule(SGD, params, d_p_list, {"momentum_buffer": momentum_buffer_list}, fused=fused,
               grad_scale=grad_scale, found_inf=found_inf, weight_decay=weight_decay,
               momentum=momentum, lr=lr, dampening=dampening, nesterov=nesterov,
               maximize=maximize)
