"""Adafactor."""

from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import RuleOptimizer, apply_rule, check_least, new_step, zeros

__all__ = ["Adafactor", "adafactor"]


class Adafactor(RuleOptimizer):
    r"""Adafactor: second moments of matrices from means over rows and over columns alone.

    With :math:`\hat\beta_t = 1 - t^{\tau}` (`beta2_decay` is :math:`\tau`), for a matrix

    .. math::
        R_t &= \hat\beta_t R_{t-1} + (1-\hat\beta_t)\, \operatorname{rowmean}(g_t^2), \qquad
        C_t = \hat\beta_t C_{t-1} + (1-\hat\beta_t)\, \operatorname{colmean}(g_t^2), \\
        v_t &= \frac{R_t C_t}{\max(\operatorname{mean}(R_t), \epsilon_1)}

    and for a vector :math:`v_t = \hat\beta_t v_{t-1} + (1-\hat\beta_t) g_t^2`. Then

    .. math::
        u_t = \frac{g_t}{\sqrt{\max(v_t, \epsilon_1^2)}}, \qquad
        \theta_t = (1-\gamma\lambda)\theta_{t-1} -
            \max(\epsilon_2, \operatorname{rms}(\theta_{t-1}))\,
            \min(\gamma, t^{-1/2})\, \frac{u_t}{\max(1, \operatorname{rms}(u_t)/d)}

    Shazeer and Stern, *Adafactor: adaptive learning rates with sublinear memory cost* (2018),
    arXiv:1804.04235.

    Args:
        params: the parameters, or groups of them.
        lr, beta2_decay, d, weight_decay: see above.
        eps: the pair :math:`(\epsilon_1, \epsilon_2)`; None stands for the dtype's epsilon.
        foreach: accepted without effect on the numbers.
        maximize: climb instead of descending.

    Example::

        >>> import flambeau as torch
        >>> w = torch.ones(2, 3, requires_grad=True)
        >>> optimizer = torch.optim.Adafactor([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w[0]
        tensor([0.5000, 0.5000, 0.5000], grad_fn=<SelectBackward0>)
    """

    elementwise = False

    takes_complex = refuses_complex = True
    read_first = ("eps",)
    decoupled_weight_decay = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None,
                 maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_least("Learning rate should be >= 0 but is: ", lr)
        most = 0.0
        if not most >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_least("epsilon1 should be >= 0 but is: ", eps[0])
        check_least("epsilon2 should be >= 0 but is: ", eps[1])
        check_least("Clipping threshold d should be >= 1 but is: ", d, 1.0)
        check_least("weight_decay should be >= 0 but is: ", weight_decay)
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = new_step()
        if p.dim() > 1:
            state["row_var"] = p.grad.new_zeros((*p.shape[:-1], 1))
            state["col_var"] = p.grad.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            state["variance"] = zeros(p)

    def _decay(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        return grad   # must follow the scale of the parameter, which `update` measures first

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        t = state["step"].item()
        weight = t ** group["beta2_decay"]
        eps1, eps2 = group["eps"]
        if eps1 is None:
            eps1 = flambeau.finfo(p.dtype).eps
        size = min(group["lr"], t**-0.5) * max(eps2, _rms(p))
        if group["weight_decay"] != 0:
            p.mul_(1 - group["lr"] * group["weight_decay"])
        if p.dim() > 1:
            rows = state["row_var"].lerp_(_mean_square(grad, -1), weight)
            columns = state["col_var"].lerp_(_mean_square(grad, -2), weight)
            update = (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            update = state["variance"].lerp_(grad * grad, weight).clone()
        update.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        p.add_(update, alpha=-(size / max(1.0, _rms(update) / group["d"])))


def adafactor(params: list[Tensor], grads: list[Tensor], row_vars: list[Tensor | None],
              col_vars: list[Tensor | None], variances: list[Tensor | None],
              state_steps: list[Tensor], foreach: bool | None = None,
              grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
              has_complex: bool = False, *, d: float | Tensor, lr: float | Tensor,
              beta2_decay: float, weight_decay: float, eps1: float | None, eps2: float,
              maximize: bool) -> None:
    """One step of :class:`Adafactor` on lists of parameters, gradients and what is kept for them
    (None where a parameter has no such value), in place."""
    apply_rule(Adafactor, params, grads, {
        "row_var": row_vars, "col_var": col_vars, "variance": variances, "step": state_steps},
        grad_scale=grad_scale, found_inf=found_inf, d=d, lr=lr, beta2_decay=beta2_decay,
        weight_decay=weight_decay, eps=(eps1, eps2), maximize=maximize)


def _mean_square(grad: Tensor, dim: int) -> Tensor:
    return grad.norm(dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _rms(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5
