"""Measurements, and small helpers of those who print them."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import flambeau
from flambeau.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they come.

    >>> ordered_unique([3, 1, 3])
    [3, 1]
    """
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Let a block compute with `n` threads."""
    before = flambeau.get_num_threads()
    try:
        flambeau.set_num_threads(n)
        yield
    finally:
        flambeau.set_num_threads(before)


__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads",
           "trim_sigfig", "unit_to_english"]
