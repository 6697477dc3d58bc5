"""`torch.mps`: Apple's GPU is not available, and these functions say so."""
from __future__ import annotations


def is_available() -> bool:
    """False: flambeau computes on the CPU."""
    return False


def device_count() -> int:
    """0: flambeau computes on the CPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Has no effect without a device."""


__all__ = ["device_count", "is_available", "manual_seed"]
