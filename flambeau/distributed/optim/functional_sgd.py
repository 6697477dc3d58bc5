"""`SGD` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import StepsSingly
from flambeau.optim import SGD

__all__: list[str] = []


class _FunctionalSGD(StepsSingly):
    """`SGD`, stepping along gradients that are given."""

    optimizer_class = SGD

    def __init__(self, params: list[Tensor], lr: float = 1e-2, momentum: float = 0.0,
                 dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
                 maximize: bool = False, foreach: bool = False, fused: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "momentum": momentum, "dampening": dampening,
                          "weight_decay": weight_decay},
                         {"nesterov": nesterov, "maximize": maximize, "foreach": foreach,
                          "fused": fused})
