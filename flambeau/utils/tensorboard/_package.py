"""The package `tensorboard`, imported when it is first used."""
from __future__ import annotations

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """A module of the package `tensorboard`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("torch.utils.tensorboard needs the package tensorboard: "
                          "pip install flambeau[tensorboard]") from error


def protocol(name: str) -> ModuleType:
    """A module of TensorBoard's messages: "summary", "event", "tensor" …"""
    return load(f"tensorboard.compat.proto.{name}_pb2")
