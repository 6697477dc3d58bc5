"""Optimisers: they change parameters along the gradients that `backward` left in them.

Each optimiser's rule stands once, as mathematics, in a module of its name; `optimizer` holds
what all share, `rule` applies a rule to the parameters, and `lr_scheduler` and `swa_utils` change
learning rates and average models as training goes on.
"""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._support.own_methods import belong
from flambeau.optim import lr_scheduler, swa_utils
from flambeau.optim._swap import swap_in_optimizer_params_and_state
from flambeau.optim.adadelta import Adadelta
from flambeau.optim.adafactor import Adafactor
from flambeau.optim.adagrad import Adagrad
from flambeau.optim.adam import Adam, AdamW
from flambeau.optim.adamax import Adamax
from flambeau.optim.asgd import ASGD
from flambeau.optim.lbfgs import LBFGS
from flambeau.optim.muon import Muon
from flambeau.optim.nadam import NAdam
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.radam import RAdam
from flambeau.optim.rmsprop import RMSprop
from flambeau.optim.rprop import Rprop
from flambeau.optim.sgd import SGD
from flambeau.optim.sparse_adam import SparseAdam

belong(__name__, Adafactor, Muon, swap_in_optimizer_params_and_state)
belong(f"{__name__}.adamw", AdamW)         # that is where PyTorch's pickles look for it

__all__ = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon",
           "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler",
           "swa_utils", "swap_in_optimizer_params_and_state"]
# modules that PyTorch's package does not show: they can be imported
for _name in ("adadelta", "adagrad", "adam", "adamax", "asgd", "lbfgs", "nadam", "optimizer",
              "radam", "rmsprop", "rprop", "sgd", "sparse_adam"):
    globals().pop(_name, None)


def __getattr__(name: str) -> Any:
    """Modules that only code written for PyTorch looks for are imported when first used."""
    if name in ("_adafactor", "_functional", "_multi_tensor", "_muon", "_stateless", "adamw"):
        return importlib.import_module(f"flambeau.optim.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
