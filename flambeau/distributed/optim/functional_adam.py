"""`Adam` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import StepsSingly
from flambeau.optim import Adam

__all__: list[str] = []


class _FunctionalAdam(StepsSingly):
    """`Adam`, stepping along gradients that are given."""

    optimizer_class = Adam

    def __init__(self, params: list[Tensor], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, maximize: bool = False,
                 foreach: bool = False, fused: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "eps": eps, "beta1": betas[0], "beta2": betas[1],
                          "weight_decay": weight_decay},
                         {"amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                          "fused": fused})
