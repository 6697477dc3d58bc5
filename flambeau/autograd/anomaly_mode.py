"""Anomaly mode: where was the op made whose backward failed, or gave NaN?"""
from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

import numpy as np

from flambeau._support.c_functions import takes_nothing
from flambeau._support.own_methods import shown_as
from flambeau._support.scopes import Scope, absent
from flambeau._support.source_locations import PACKAGE
from flambeau.core import modes
from flambeau.core.autograd import engine
from flambeau.core.autograd.backward_errors import describe_place
from flambeau.core.autograd.engine import current_autograd_node
from flambeau.core.autograd.graph import Node
from flambeau.core.autograd.recording import node_watchers
from flambeau.core.tensor import plain_types
from flambeau.schema.arguments import bound_by
from flambeau.schema.errors import type_name


def _store_traceback(node: Node) -> None:
    """Store where a node was made, and during whose backward."""
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(PACKAGE):
        frames.pop()
    node.metadata["traceback_"] = frames.format()
    parent = current_autograd_node()
    if parent is not None:
        node.metadata["parent_"] = parent


@takes_nothing
def is_anomaly_enabled() -> bool:
    """Is anomaly mode on?"""
    return modes.anomaly.enabled


@takes_nothing
def is_anomaly_check_nan_enabled() -> bool:
    """Does anomaly mode raise where a gradient is NaN?"""
    return modes.anomaly.check_nan


def _mode_changes(mode: bool, check_nan: bool) -> Any:
    """The changes that switch anomaly mode."""
    for name, value, at in (("enabled", mode, 1), ("check_nan", check_nan, 2)):
        if not isinstance(value, bool):
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {at}) must be "
                            f"bool, not {type_name(value)}")
    state, was = vars(modes.anomaly), modes.anomaly.enabled
    changes: Any = (state, "enabled", mode), (state, "check_nan", check_nan)
    if was == mode:
        return changes
    return *changes, (node_watchers, _store_traceback, *(() if mode else (absent,)))


@bound_by("set_anomaly_enabled(bool enabled, bool check_nan=True) -> ()")
def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off."""
    set_detect_anomaly(enabled, check_nan)


def run_checked(node: Node, grad: Any) -> Any:
    """Run a node: say where it was made if it fails or gives NaN."""
    try:
        produced = engine.apply_node(node, grad)
    except Exception:
        warn_forward_traceback(node)
        raise
    if modes.anomaly.check_nan:
        for i, g in enumerate(produced):
            if type(g) in plain_types and g._array.dtype.kind in "fc" and np.isnan(g._array).any():
                warn_forward_traceback(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th "
                                   "output.")
    return produced


def _warn(message: str) -> None:
    """Warn; where warnings are errors, print: the error of the backward must come through."""
    try:
        warnings.warn(message, UserWarning, stacklevel=3)
    except Warning as warning:
        print(f"Warning: {warning}", file=sys.stderr)


def warn_forward_traceback(node: Node) -> None:
    """The forward traceback of a node, and of the nodes in whose backward it was made."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. "
              "Enable detect anomaly during forward pass for more information. It was made here:"
              + describe_place(node))
        return
    _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
          f"{''.join(stack)}")
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_")
        text = ("No forward pass information available." if stack is None else
                f"Traceback of forward call that induced the previous calculation:\n"
                f"{''.join(stack)}")
        _warn(f"\n\nPrevious calculation was induced by {parent.name()}. {text}")
        parent = parent.metadata.get("parent_")


modes.anomaly.run = run_checked


class detect_anomaly(Scope):
    """Inside, a backward that raises also prints the traceback of the forward call whose node
    failed, and one that gives NaN raises (unless `check_nan` is False).

    >>> import flambeau
    >>> with detect_anomaly(check_nan=False):
    ...     y = flambeau.ones(1, requires_grad=True) * 2
    >>> "traceback_" in y.grad_fn.metadata
    True
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        self.prev, self.prev_check_nan = modes.anomaly.enabled, modes.anomaly.check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and "
                      "should only be enabled for debugging.", stacklevel=2)

    _gives: Any = None

    def _changes(self) -> Any:
        return _mode_changes(True, self.check_nan)


class set_detect_anomaly(Scope):
    """Switch anomaly mode on or off; as a context manager, until the block ends."""

    _early, _gives = True, None

    @shown_as("set_detect_anomaly.__init__")
    def __new__(cls, mode: bool, check_nan: bool = True) -> Any:
        for place, (name, value) in enumerate({"enabled": mode, "check_nan": check_nan}.items()):
            if not isinstance(value, bool):
                raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {place + 1}) "
                                f"must be bool, not {type_name(value)}")
        self = super().__new__(cls)
        self.mode, self.check_nan = mode, check_nan
        self.prev, self.prev_check_nan = modes.anomaly.enabled, modes.anomaly.check_nan
        return self

    def __getnewargs__(self) -> tuple[bool, bool]:      # a copy sets nothing before it is entered
        return self.mode, self.check_nan

    def _changes(self) -> Any:
        return _mode_changes(self.mode, self.check_nan)


__all__ = ["detect_anomaly", "set_detect_anomaly"]
