"""What profilers count: steps of several that count, and keys that may come once."""
from __future__ import annotations

from typing import Any


class EnforceUnique:
    """Raises when it sees the same key twice.

    >>> seen = EnforceUnique()
    >>> seen.see("add", 1)
    >>> seen.see("add", 1)
    Traceback (most recent call last):
    RuntimeError: duplicate key: ('add', 1)
    """

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Remember `key`; RuntimeError if it was seen before."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps, of several that count: the furthest one is the current step.

    >>> start = KinetoStepTracker.current_step()
    >>> KinetoStepTracker.init_step_count("loop")
    >>> KinetoStepTracker.increment_step("loop") - start
    1
    >>> KinetoStepTracker.erase_step_count("loop")
    True
    """

    _current_step = 0
    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """`requester` counts too, from the current step on."""
        cls._steps[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """`requester` counts no longer. Did it?"""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One step more of `requester`; the current step, which is the largest of all counts."""
        if requester not in cls._steps:
            cls.init_step_count(requester)
        cls._steps[requester] += 1
        cls._current_step = max(cls._steps.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The furthest that any has counted."""
        return cls._current_step
