"""The compiled parts of other packages, written for flambeau: `torch.ops.load_library`.

A package that registers ops in C++ asks for its extension by path. That file was compiled against
PyTorch and cannot be loaded here; for the packages of `_WRITTEN_HERE`, a module of this folder
registers ops of the same names and schemas instead.
"""
from __future__ import annotations

import ctypes
import importlib
import os
from pathlib import Path

# The module for an extension: the package that it is part of, and its file without suffixes.
_WRITTEN_HERE = {
    ("torchvision", "_C"): "vision",
    ("torchvision", "_C_stable"): "vision",
    ("torchvision", "image"): "images",
    ("torchvision", "image_stable"): "images",
    ("torchaudio", "_torchaudio"): "audio",
    ("torchaudio", "libtorchaudio"): "audio",
}
loaded_libraries: set[str] = set()


def load_library(path: str | os.PathLike) -> None:
    """Make the ops of an extension known, as `torch.ops.<namespace>.<name>`.

    The extensions of the packages that flambeau knows are replaced by its own versions; others
    are loaded as shared libraries, which fails if they are linked against PyTorch.
    """
    named = os.path.realpath(path)
    real = Path(os.fsdecode(named))
    module = _module_for(real)
    if module is not None and real.exists():
        importlib.import_module(f"flambeau._extensions.{module}")
    else:
        try:
            ctypes.CDLL(str(real))
        except OSError as error:
            raise OSError(f"Could not load this library: {named!s}") from error
    loaded_libraries.add(str(real))


def _module_for(path: Path) -> str | None:
    stem = path.name.partition(".")[0]
    return next((module for (package, name), module in _WRITTEN_HERE.items()
                 if name == stem and package in path.parts), None)
