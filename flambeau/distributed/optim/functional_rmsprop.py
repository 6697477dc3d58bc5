"""`RMSprop` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import FunctionalOptimizer
from flambeau.optim import RMSprop

__all__: list[str] = []


class _FunctionalRMSprop(FunctionalOptimizer):
    """`RMSprop`, stepping along gradients that are given."""

    optimizer_class = RMSprop

    def __init__(self, params: list[Tensor], lr: float = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0,
                 centered: bool = False, foreach: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
                          "momentum": momentum},
                         {"centered": centered, "foreach": foreach, "maximize": maximize})
