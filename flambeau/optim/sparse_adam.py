"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.optim._support import ParamsT
from flambeau.optim.rule import RuleOptimizer, apply_rule, check_betas, zeros

__all__ = ["SparseAdam"]


class SparseAdam(RuleOptimizer):
    r"""Adam that moves only the entries for which the gradient holds a value.

    The rule is that of :class:`flambeau.optim.Adam`, applied to those entries of the parameter
    and of its running means; all others rest, their means too. For embeddings with
    `sparse=True`.

    Args:
        params: the parameters, dense tensors whose gradients are sparse, or groups of them.
        lr, betas, eps, maximize: as in :class:`flambeau.optim.Adam`.

    Example::

        >>> import flambeau as torch
        >>> w = torch.ones(3, requires_grad=True)
        >>> w.grad = torch.sparse_coo_tensor([[1]], [2.0], (3,))
        >>> torch.optim.SparseAdam([w], lr=0.5).step()
        >>> w
        tensor([1.0000, 0.5000, 1.0000], requires_grad=True)
    """

    takes_sparse = takes_complex = True
    counts_in_tensors = False
    read_first = ("betas",)

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        least = 0.0
        if not least < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not least < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [([i, j], p) for i, group in enumerate(self.param_groups)
                  for j, p in enumerate(group["params"])]
        sparse = [place for place, p in places if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense "
                             "parameter tensors")
        complex_ = [place for place, p in places if p.is_complex()]
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support "
                             "complex parameters")

    def init_state(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["step"] = 0
        state["exp_avg"] = zeros(p)
        state["exp_avg_sq"] = zeros(p)

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead")
        beta1, beta2 = group["betas"]
        state["step"] += 1
        t = state["step"]
        grad = grad.coalesce()
        rows, values = tuple(grad.indices()), grad.values()
        if values.numel() == 0:
            return
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean[rows] = m = mean[rows] + (1 - beta1) * (values - mean[rows])
        square[rows] = v = square[rows] + (1 - beta2) * (values * values - square[rows])
        size = group["lr"] * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        p[rows] = p[rows] - size * (m / (v.sqrt() + group["eps"]))


def sparse_adam(params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor],
                exp_avg_sqs: list[Tensor], state_steps: list[Tensor], *, eps: float,
                beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor,
                maximize: bool) -> None:
    """One step of :class:`SparseAdam` on lists of parameters, sparse gradients and what is kept for
    them, in place. `state_steps` holds numbers, which count this step already."""
    apply_rule(SparseAdam, params, grads, {
        "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": [t - 1 for t in state_steps]},
        eps=eps, betas=(beta1, beta2), lr=lr, maximize=maximize)
