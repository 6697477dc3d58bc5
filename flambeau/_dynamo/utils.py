"""Small functions of PyTorch's tracer that libraries take from here."""
from __future__ import annotations

import functools
import warnings
from collections import Counter, defaultdict

__all__ = ["counters", "is_compile_supported", "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)     # what a tracer counts: nothing


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` accepts programs for a kind of device.

    >>> is_compile_supported("cpu"), is_compile_supported("cuda")
    (True, False)
    """
    return device_type == "cpu"


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, but not again of the same."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
