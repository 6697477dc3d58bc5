"""The older way in which what several processes have is written by one: the first."""
from __future__ import annotations

import logging

from flambeau.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from flambeau.distributed.checkpoint.planner import SavePlan

__all__ = ["dedup_tensors"]


def init_logger() -> logging.Logger:
    """The logger of this module."""
    return logging.getLogger(__name__)


def dedup_tensors(all_plans: list[SavePlan]) -> list[SavePlan]:
    """Let what is in several plans stay in the first."""
    return dedup_save_plans(list(all_plans), save_to_lowest_rank=True)
