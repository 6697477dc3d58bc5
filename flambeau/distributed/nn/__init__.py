"""Collectives with gradients, and modules in other processes."""
from __future__ import annotations

from typing import Any

from flambeau.distributed.nn import functional
from flambeau.distributed.nn.functional import (
    _all_gather_base,
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    group,
    reduce,
    reduce_scatter,
    scatter,
)


def __getattr__(name: str) -> Any:
    import importlib
    if name == "RemoteModule":
        return importlib.import_module("flambeau.distributed.nn.api.remote_module").RemoteModule
    if name in ("api", "jit"):
        return importlib.import_module(f"flambeau.distributed.nn.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
