"""Division as Python divides, on plain numbers."""
from __future__ import annotations


def FloorDiv(base: int, divisor: int) -> int:
    """`base // divisor`.

    >>> FloorDiv(7, 2)
    3
    """
    return base // divisor
