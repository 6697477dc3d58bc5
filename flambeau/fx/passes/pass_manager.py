"""Passes over anything, in an order that keeps to constraints.

>>> from flambeau.fx.passes.pass_manager import PassManager, loop_pass
>>> PassManager([lambda x: x + 1, loop_pass(lambda x: 2 * x, n_iter=3)])(1)
16
"""
from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from flambeau.fx.passes.infra.pass_manager import (
    _validate_pass_schedule_constraint,
    this_before_that_pass_constraint,
)

logger = logging.getLogger(__name__)
Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def inplace_wrapper(fn: Pass) -> Pass:
    """A pass that gives back what `fn` has changed in place."""
    @wraps(fn)
    def wrapped(source: Any, *args: Any, **kwargs: Any) -> Any:
        fn(source, *args, **kwargs)
        return source
    return wrapped


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """A pass that logs what it gives."""
    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result
    return wrapped


def loop_pass(base_pass: Pass, n_iter: int | None = None,
              predicate: Callable[..., bool] | None = None) -> Pass:
    """A pass that runs `base_pass` so many times, or as long as the predicate holds."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def looped(source: Any) -> Any:
        if n_iter is not None:
            for _ in range(n_iter):
                source = base_pass(source)
            return source
        assert predicate is not None
        while predicate(source):
            source = base_pass(source)
        return source
    return looped


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """The constraint that passes which are called as `these` come before such as `those`."""
    def holds(a: Pass, b: Pass) -> bool:
        return not (a.__name__ == those.__name__ and b.__name__ == these.__name__)
    return holds


class PassManager:
    """Passes, called one after the other, and constraints on their order."""

    def __init__(self, passes: list[Pass] | None = None,
                 constraints: list[Constraint] | None = None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """A manager of these passes."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Let a further pass run, as the last."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Let the order keep to this, too."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Leave out the passes of these names."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Put a pass where another is."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raise if the order breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for run in self.passes:
            source = run(source)
        return source


__all__ = ["PassManager", "inplace_wrapper", "log_hook", "loop_pass",
           "these_before_those_pass_constraint", "this_before_that_pass_constraint"]
