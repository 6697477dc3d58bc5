"""The errors of programs whose course or sizes are not what was promised."""
from __future__ import annotations


class GuardOnDataDependentSymNode(RuntimeError):
    """The program's course depends on a value that is not known when it is exported."""


class ConstraintViolationError(RuntimeError):
    """An example does not fit the bounds of a dynamic size."""


__all__ = ["ConstraintViolationError", "GuardOnDataDependentSymNode"]
