"""Which op of TorchScript a function is: `aten::add` for `torch.add`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_registered: dict[int, tuple[Callable[..., Any], str]] = {}


def _op_name(fn: Callable[..., Any]) -> str | None:
    """The name of the op that a public function is: its declaration says it, or it is looked up by
    the function's own name."""
    import flambeau
    from flambeau import functional
    from flambeau.dispatch.aten.schemas import name_of
    from flambeau.nn.modules import utils
    name = name_of(fn) or getattr(fn, "__name__", "")
    return f"aten::{name}" if name_of(fn) or (
        getattr(flambeau, name, None) is fn and name not in functional.__all__) or fn in (
            flambeau.autograd.grad, flambeau.autograd.backward, utils._single, utils._pair,
            utils._triple, utils._quadruple) else None


def _register_builtin(fn: Callable[..., Any], op: str) -> None:
    """Say that a function is the op of this name."""
    _registered[id(fn)] = fn, op


def _find_builtin(fn: Callable[..., Any]) -> str | None:
    """The name of the op that a function is.

    >>> _find_builtin(flambeau.add)
    'aten::add'
    """
    if id(fn) in _registered:
        return _registered[id(fn)][1]
    return None if isinstance(fn, type) else _op_name(fn)
