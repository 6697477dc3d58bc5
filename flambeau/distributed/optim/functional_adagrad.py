"""`Adagrad` for gradients that are given."""
from __future__ import annotations

from flambeau import Tensor
from flambeau.distributed.optim._functional import FunctionalOptimizer
from flambeau.optim import Adagrad

__all__: list[str] = []


class _FunctionalAdagrad(FunctionalOptimizer):
    """`Adagrad`, stepping along gradients that are given."""

    optimizer_class = Adagrad

    def __init__(self, params: list[Tensor], lr: float = 1e-2, lr_decay: float = 0.0,
                 weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
                 warmup_lr_multiplier: float = 1.0, warmup_num_iters: float = 0.0,
                 eps: float = 1e-10, coalesce_grad: bool = True, foreach: bool = False,
                 fused: bool = False, maximize: bool = False,
                 _allow_empty_param_list: bool = False):
        super().__init__(params, _allow_empty_param_list,
                         {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                          "initial_accumulator_value": initial_accumulator_value,
                          "warmup_lr_multiplier": warmup_lr_multiplier,
                          "warmup_num_iters": warmup_num_iters},
                         {"foreach": foreach, "fused": fused, "maximize": maximize})
        self.coalesce_grad = coalesce_grad
