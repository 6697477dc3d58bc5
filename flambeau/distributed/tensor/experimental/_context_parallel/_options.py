"""How attention over shared sequences is computed."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class _CausalBehavior(Enum):
    """Of one part of the keys for one part of the queries: none, all, or the triangle."""
    SKIP = None
    NOT_IS_CAUSAL = False
    IS_CAUSAL = True


class _RotateMethod(Enum):
    """How keys and values get to all processes: from one to the next, or all at once."""
    ALL_TO_ALL = auto()
    ALL_GATHER = auto()


class _DispatchMode(Enum):
    """Is `scaled_dot_product_attention` replaced, or do modules prepare its arguments?"""
    MONKEY_PATCH = auto()
    MODULE_WRAPPER = auto()


@dataclass
class _ContextParallelOptions:
    """The options; `convert_to_f32`: sums of half-precision results are float32."""
    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values get to all processes: "allgather" or "alltoall".

    >>> set_rotate_method("alltoall")
    >>> _cp_options.rotate_method.name
    'ALL_TO_ALL'
    >>> set_rotate_method("allgather")
    """
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv "
                                  "shards rotation")
    _cp_options.rotate_method = methods[rotate_method]


def _is_causal_behavior(rank: int, world_size: int, i: int, is_causal: bool) -> _CausalBehavior:
    """What process `rank` does with the keys that arrive at step `i`, those of process
    `rank - i`."""
    if not is_causal:
        return _CausalBehavior.NOT_IS_CAUSAL
    if i == 0:
        return _CausalBehavior.IS_CAUSAL
    if (rank - i) % world_size < rank or _cp_options.enable_load_balance:
        return _CausalBehavior.NOT_IS_CAUSAL
    return _CausalBehavior.SKIP
