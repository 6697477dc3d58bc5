"""Optimizers, and their forms that are given gradients."""
from __future__ import annotations

from typing import Any

from flambeau import optim
from flambeau.distributed.optim.functional_adadelta import _FunctionalAdadelta
from flambeau.distributed.optim.functional_adagrad import _FunctionalAdagrad
from flambeau.distributed.optim.functional_adam import _FunctionalAdam
from flambeau.distributed.optim.functional_adamax import _FunctionalAdamax
from flambeau.distributed.optim.functional_adamw import _FunctionalAdamW
from flambeau.distributed.optim.functional_rmsprop import _FunctionalRMSprop
from flambeau.distributed.optim.functional_rprop import _FunctionalRprop
from flambeau.distributed.optim.functional_sgd import _FunctionalSGD

functional_optim_map: dict[type, type] = {
    optim.Adagrad: _FunctionalAdagrad, optim.Adam: _FunctionalAdam, optim.AdamW: _FunctionalAdamW,
    optim.SGD: _FunctionalSGD, optim.Adadelta: _FunctionalAdadelta,
    optim.RMSprop: _FunctionalRMSprop, optim.Rprop: _FunctionalRprop,
    optim.Adamax: _FunctionalAdamax}


def register_functional_optim(key: type, optim: type) -> None:
    """Let `optim` be the form of the optimizer `key`, if it has none."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> Any:
    """The form of an optimizer that is given gradients.

    >>> weight = nn.Parameter(flambeau.ones(2))
    >>> as_functional_optim(flambeau.optim.SGD, lr=0.5).step_param(weight, flambeau.ones(2))
    >>> weight.data
    tensor([0.5000, 0.5000])
    """
    try:
        found = functional_optim_map[optim_cls]
    except KeyError as error:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!"
                         ) from error
    return _create_functional_optim(found, *args, **kwargs)


def _create_functional_optim(functional_optim_cls: type, *args: Any, **kwargs: Any) -> Any:
    return functional_optim_cls([], *args, **kwargs, _allow_empty_param_list=True)
