"""Helpers around tensors and modules: data loading, checkpointing, hooks, pictures of the graph."""
from __future__ import annotations

import importlib
from typing import Any

from flambeau.utils import hooks

_LAZY = ("_mode_utils", "_python_dispatch", "benchmark", "checkpoint", "data", "graph", "hooks",
         "tensorboard", "_pytree", "dlpack", "weak", "model_zoo", "flop_counter",
         "mkldnn")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"flambeau.utils.{name}")
    raise AttributeError(f"module 'flambeau.utils' has no attribute {name!r}")


def rename_privateuse1_backend(backend_name: str) -> None:
    """Not offered: there are no other devices to name."""
    raise NotImplementedError("rename_privateuse1_backend: flambeau has no other backends")


__all__ = ["hooks"]
