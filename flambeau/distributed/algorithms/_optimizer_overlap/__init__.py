"""Optimizers that step while the backward pass still runs."""
from flambeau.distributed.algorithms._optimizer_overlap.optimizer_overlap import (
    _as_overlapped_optim,
)
