"""Fake tensors: flambeau has `meta` tensors instead."""
from __future__ import annotations

from typing import Any

__all__ = ["is_fake"]


def is_fake(x: Any) -> bool:
    """Does a tensor only stand for another? None does."""
    return False
