"""`Adamax` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import FunctionalOptimizer
from flambeau.optim import Adamax

__all__: list[str] = []


class _FunctionalAdamax(FunctionalOptimizer):
    """`Adamax`, stepping along gradients that are given."""

    optimizer_class = Adamax

    def __init__(self, params: list[Tensor], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "eps": eps, "beta1": betas[0], "beta2": betas[1],
                          "weight_decay": weight_decay},
                         {"foreach": foreach, "maximize": maximize})
