"""Tables that write ops with simpler ones, for `make_fx` and `export`.

>>> import flambeau
>>> table = core_aten_decompositions()
>>> flambeau.ops.aten.silu.default in table
True
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._decomp import _arithmetic as _arithmetic
from flambeau._decomp import decompositions as decompositions
from flambeau._decomp._register import TABLE
from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau.export._decompose import core_decompositions
from flambeau.export.decomp_utils import CustomDecompTable, default_decompositions

global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": {**core_decompositions(), **TABLE}, "pre_autograd": {}, "meta": {}}
decomposition_table = global_decomposition_table["post_autograd"]


def _overloads(ops: Any) -> list[Any]:
    if isinstance(ops, OpOverloadPacket):
        return [getattr(ops, name) for name in ops.overloads()]
    return [one for op in ops for one in _overloads(op)] if isinstance(ops, list | tuple) else [ops]


def register_decomposition(aten_op: Any, registry: dict[Any, Any] | None = None, *,
                           type: str = "post_autograd", unsafe: bool = False
                           ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function stands for `aten_op` (an op, all overloads of one, or a list)."""
    if type not in global_decomposition_table:
        raise AssertionError("type must be one of post_autograd, pre_autograd, or meta, got "
                             f"{type}")
    table = global_decomposition_table[type] if registry is None else registry

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in _overloads(aten_op):
            if op in table:
                raise RuntimeError(f"duplicate registrations for {op}")
            table[op] = function
        return function
    return register


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd"
                       ) -> dict[Any, Callable[..., Any]]:
    """The decompositions there are of `aten_ops`; ops without one are left out."""
    known = global_decomposition_table[type]
    return {op: known[op] for op in _overloads(list(aten_ops)) if op in known}


def remove_decompositions(decompositions: dict[Any, Callable[..., Any]], aten_ops: Sequence[Any]
                          ) -> None:
    """Take `aten_ops` out of a table."""
    for op in _overloads(list(aten_ops)):
        decompositions.pop(op, None)


def core_aten_decompositions() -> CustomDecompTable:
    """The table of `run_decompositions`."""
    return default_decompositions()


__all__ = ["CustomDecompTable", "OpOverload", "core_aten_decompositions", "decomposition_table",
           "get_decompositions", "global_decomposition_table", "register_decomposition",
           "remove_decompositions"]
