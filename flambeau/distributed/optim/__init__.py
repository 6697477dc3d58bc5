"""Optimizers for several processes."""
from __future__ import annotations

from flambeau.distributed.optim.apply_optimizer_in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
)
from flambeau.distributed.optim.functional_adadelta import _FunctionalAdadelta
from flambeau.distributed.optim.functional_adagrad import _FunctionalAdagrad
from flambeau.distributed.optim.functional_adam import _FunctionalAdam
from flambeau.distributed.optim.functional_adamax import _FunctionalAdamax
from flambeau.distributed.optim.functional_adamw import _FunctionalAdamW
from flambeau.distributed.optim.functional_rmsprop import _FunctionalRMSprop
from flambeau.distributed.optim.functional_rprop import _FunctionalRprop
from flambeau.distributed.optim.functional_sgd import _FunctionalSGD
from flambeau.distributed.optim.named_optimizer import _NamedOptimizer
from flambeau.distributed.optim.optimizer import DistributedOptimizer
from flambeau.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from flambeau.distributed.optim.utils import as_functional_optim
from flambeau.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer",
           "as_functional_optim"]
