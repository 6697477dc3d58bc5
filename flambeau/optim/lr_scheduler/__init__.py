"""Schedulers: they change the learning rates of an optimiser as training goes on.

`base` holds what they share, `decay` those that go one way, `cycles` those that go up and down,
`plateau` the one that watches a measure, and `compose` those that are made of others.
"""

from __future__ import annotations

from typing import Any

from flambeau._support.own_methods import adopt
from flambeau.optim.lr_scheduler.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _LRScheduler,
    per_group,
)
from flambeau.optim.lr_scheduler.base import allow_get_lr as _enable_get_lr_call
from flambeau.optim.lr_scheduler.base import copy_of as _copy
from flambeau.optim.lr_scheduler.base import initial_mode as _initial_mode
from flambeau.optim.lr_scheduler.base import set_option as _update_param_group_val
from flambeau.optim.lr_scheduler.base import values_of as _param_groups_val_list
from flambeau.optim.lr_scheduler.base import warn_outside_of_step as _warn_get_lr_called_within_step
from flambeau.optim.lr_scheduler.compose import ChainedScheduler, SequentialLR
from flambeau.optim.lr_scheduler.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from flambeau.optim.lr_scheduler.decay import *
from flambeau.optim.lr_scheduler.plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list[Any]:
    """One value for each group of an optimiser."""
    return per_group(name, param, optimizer)


adopt(globals(), "optim.lr_scheduler.")


__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
           "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
           "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
           "StepLR"]
