"""Locks that are files, by the package `filelock`."""
from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "FileLock":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from filelock import FileLock
    except ImportError as error:
        raise ImportError("torch.utils._filelock.FileLock needs the package filelock: pip install "
                          "filelock") from error
    return FileLock
