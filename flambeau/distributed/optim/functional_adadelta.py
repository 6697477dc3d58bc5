"""`Adadelta` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import FunctionalOptimizer
from flambeau.optim import Adadelta

__all__: list[str] = []


class _FunctionalAdadelta(FunctionalOptimizer):
    """`Adadelta`, stepping along gradients that are given."""

    optimizer_class = Adadelta

    def __init__(self, params: list[Tensor], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0.0, foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay},
                         {"foreach": foreach, "maximize": maximize})
