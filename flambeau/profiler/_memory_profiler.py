"""What memory is for, over the time of a profile."""
from __future__ import annotations

from enum import Enum, auto
from typing import Any


class Category(Enum):
    """What memory is for."""

    INPUT = auto()
    TEMPORARY = auto()
    ACTIVATION = auto()
    GRADIENT = auto()
    AUTOGRAD_DETAIL = auto()
    PARAMETER = auto()
    OPTIMIZER_STATE = auto()


class Action(Enum):
    """What happened to memory."""

    PREEXISTING = auto()
    CREATE = auto()
    INCREMENT_VERSION = auto()
    DESTROY = auto()


_CATEGORY_TO_COLORS: dict[Category | None, str] = {
    Category.PARAMETER: "darkgreen", Category.OPTIMIZER_STATE: "goldenrod",
    Category.INPUT: "black", Category.TEMPORARY: "mediumpurple", Category.ACTIVATION: "red",
    Category.GRADIENT: "mediumblue", Category.AUTOGRAD_DETAIL: "royalblue", None: "grey"}
_CATEGORY_TO_INDEX = {category: i for i, category in enumerate(_CATEGORY_TO_COLORS)}
_ACTION_TO_INDEX = {action: action.value for action in Action}


class MemoryProfile:
    """What each piece of memory was for. Not offered: a profile keeps the sizes of results only."""

    def __init__(self, result: Any):
        raise NotImplementedError("torch.profiler._memory_profiler.MemoryProfile: a profile keeps "
                                  "the sizes of results only; see profile(profile_memory=True)")


class MemoryProfileTimeline:
    """How much memory was for what, over time, of a profile whose `timeline` lists (time, action,
    (piece, version), bytes)."""

    def __init__(self, memory_profile: Any):
        self.timeline, self.categories = memory_profile.timeline, memory_profile._categories

    def _coalesce_timeline(self, device_str: str) -> tuple[list[int], list[list[int]]]:
        """The times at which memory changed, in microseconds, and how much of each category there
        was then. What was there before has the first of the times."""
        times: list[int] = []
        sizes: list[list[int]] = []
        now = [0] * (1 + len(_CATEGORY_TO_INDEX))       # the first is where stacked areas start
        for t, action, (key, version), nbytes in self.timeline:
            if str(key.device) != device_str:
                continue
            place = 1 + _CATEGORY_TO_INDEX[self.categories.get(key, version)]
            if action in (Action.PREEXISTING, Action.CREATE):
                now[place] += nbytes
            elif action is Action.DESTROY:
                now[place] -= nbytes
            elif action is Action.INCREMENT_VERSION:
                now[place] -= nbytes
                now[1 + _CATEGORY_TO_INDEX[self.categories.get(key, version + 1)]] += nbytes
            t = t if t < 0 else t // 1000
            if times and times[-1] == t:
                sizes[-1] = list(now)
            else:
                times.append(t)
                sizes.append(list(now))
        first = min((t for t in times if t >= 0), default=-1)
        return [t if t >= 0 else first for t in times], sizes

    def export_memory_timeline(self, path: str, device_str: str) -> None:
        """Write times and sizes as JSON."""
        import json
        with open(path, "w") as file:
            json.dump(list(self._coalesce_timeline(device_str)), file)


__all__ = ["Action", "Category", "MemoryProfile", "MemoryProfileTimeline"]
