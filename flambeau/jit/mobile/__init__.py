"""Modules for the interpreter of mobile devices. Not offered: there is no TorchScript to run."""
from __future__ import annotations

from typing import Any


class LiteScriptModule:
    """A module for mobile devices. None can be made."""

    def __init__(self, cpp_module: Any):
        raise NotImplementedError("torch.jit.mobile.LiteScriptModule: flambeau has no TorchScript")


def _load_for_lite_interpreter(f: Any, map_location: Any = None) -> Any:
    """Not offered: there is no TorchScript to run."""
    raise NotImplementedError("torch.jit.mobile: flambeau does not run TorchScript")


__all__ = ["LiteScriptModule"]
