"""Another name of :mod:`flambeau.optim.muon`, with its parts."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.optim.muon import Muon, _orthogonal, _rate, muon

DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5
EPS = 1e-7


def _zeropower_via_newtonschulz(grad: Tensor, ns_coefficients: tuple[float, float, float],
                                ns_steps: int, eps: float) -> Tensor:
    """The nearest orthogonal matrix, roughly, by Newton-Schulz iterations in bfloat16."""
    return _orthogonal(grad, ns_coefficients, ns_steps, eps)


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Sequence[int]) -> float:
    """The learning rate for a matrix of this shape."""
    return lr * _rate(adjust_lr_fn, *param_shape[:2])


__all__ = ["Muon", "muon"]
