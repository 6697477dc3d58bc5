"""What `assert_close` says of values that differ."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor

Identifier = str | Callable[[str], str] | None


def make_scalar_mismatch_msg(actual: Any, expected: Any, *, rtol: float, atol: float,
                             identifier: Identifier = None) -> str:
    """How far two numbers are from each other.

    >>> print(make_scalar_mismatch_msg(1, 2, rtol=0, atol=0))
    Scalars are not equal!
    <BLANKLINE>
    Expected 2 but got 1.
    Absolute difference: 1
    Relative difference: 0.5
    """
    gap = abs(actual - expected)
    relative = gap / abs(expected) if expected != 0 else float("inf")
    allowed = _allowed(atol, rtol)
    return (f"{_title('Scalars', identifier, rtol, atol)}Expected {expected} but got {actual}.\n"
            f"Absolute difference: {gap}{allowed[0]}\nRelative difference: {relative}{allowed[1]}")


def make_tensor_mismatch_msg(actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float,
                             atol: float, identifier: Identifier = None) -> str:
    """How many elements differ (are not in `matches`), and where they do most."""
    if actual.ndim == 0:
        return make_scalar_mismatch_msg(actual.item(), expected.item(), rtol=rtol, atol=atol,
                                        identifier=identifier)
    if actual.dtype is flambeau.bool:
        actual, expected = actual.to(flambeau.int64), expected.to(flambeau.int64)
    count, wrong = actual.numel(), int((~matches).sum())
    gap = (actual - expected).abs()
    gap = flambeau.where(matches, flambeau.zeros_like(gap), gap)
    relative = gap / expected.abs()
    relative = flambeau.where(matches, flambeau.zeros_like(relative), relative)
    lines = [f"Greatest {name} difference: {_greatest(values)}{allowed}" for name, values, allowed
             in zip(("absolute", "relative"), (gap, relative), _allowed(atol, rtol))]
    return (f"{_title('Tensor-likes', identifier, rtol, atol)}"
            f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})\n" + "\n".join(lines))


def _greatest(values: Tensor) -> str:
    place = int(values.flatten().argmax())
    index = tuple([int(i) for i in np.unravel_index(place, tuple(values.shape))])
    return f"{values.flatten()[place].item()} at index {index}"


def _title(default: str, identifier: Identifier, rtol: float, atol: float) -> str:
    name = identifier(default) if callable(identifier) else identifier or default
    return f"{name} are not {'equal' if rtol == atol == 0 else 'close'}!\n\n"


def _allowed(atol: float, rtol: float) -> list[str]:
    return ["", ""] if rtol == atol == 0 else [f" (up to {tol} allowed)" for tol in (atol, rtol)]


__all__ = ["make_scalar_mismatch_msg", "make_tensor_mismatch_msg"]
