"""What several processes have is written by one."""
from __future__ import annotations

import dataclasses
from collections import defaultdict

from flambeau.distributed.checkpoint.metadata import MetadataIndex
from flambeau.distributed.checkpoint.planner import SavePlan, WriteItem

__all__ = ["dedup_save_plans"]


def dedup_save_plans(all_plans: list[SavePlan],
                     save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Let what is in several plans stay in the one with least to write, or in the first."""
    plans_of: dict[MetadataIndex, set[int]] = defaultdict(set)
    items: dict[MetadataIndex, WriteItem] = {}
    kept: list[set[MetadataIndex]] = [set() for _ in all_plans]
    sizes = [0] * len(all_plans)
    for number, plan in enumerate(all_plans):
        for item in plan.items:
            plans_of[item.index].add(number)
            items[item.index] = item
    for index, numbers in plans_of.items():
        chosen = min(numbers) if save_to_lowest_rank \
            else min(numbers, key=lambda number: (sizes[number], number))
        kept[chosen].add(index)
        sizes[chosen] += items[index].tensor_storage_size() or 1
    return [dataclasses.replace(plan, items=[item for item in plan.items if item.index in keep])
            for plan, keep in zip(all_plans, kept)]
