"""What cannot be known without values, as exceptions."""
from __future__ import annotations

from typing import Any


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of a kind that has no fake form."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class _OpException(RuntimeError):
    def __init__(self, func: Any):
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(_OpException):
    """The shape of an op's result depends on values."""


class DataDependentOutputException(_OpException):
    """An op gives a number that depends on values."""


class UnsupportedOperatorException(_OpException):
    """An op has no fake implementation."""


class UnsupportedMutationAliasingException(RuntimeError):
    """An op writes to memory in a way that has no fake form."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors of one call are on several devices."""


class MetadataMismatchError(RuntimeError):
    """A fake result does not look like the real one."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason
