"""Signatures of public functions and classes as text, for their test and for what records them."""
from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from typing import Any

# Modules whose names are not for users, or that need what is not there.
_NOT_HERE = re.compile(
    r"""^torch\.(cuda\.|mps\.|mtia\.|xpu\.|backends|testing\._|onnx\.|contrib|distributed\.elastic
        |jit\.|utils\.(hipify|model_dump|benchmark\.examples|tensorboard))
        |\._|\.tests?(\.|$)""", re.VERBOSE)


def modules() -> list[str]:
    """The names of PyTorch's public modules."""
    import torch
    found = pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None)
    return ["torch", *(m.name for m in found if not _NOT_HERE.search(m.name))]


def methods(cls: type) -> list[str]:
    """The public methods that a class defines itself."""
    return [name for name, value in vars(cls).items()
            if name[0] != "_" and (inspect.isroutine(value))]


def text_of(function: Any) -> str:
    """"(names=defaults)", or "" where Python knows none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty, default=_Shown(p.default)) if p.default is not p.empty
             else p.replace(annotation=p.empty) for p in found.parameters.values()]
    try:
        return str(found.replace(parameters=plain, return_annotation=found.empty))
    except ValueError:                  # no parameters that Python would take
        return ""


class _Shown:
    """A default as text: values as they are, objects by their names or types."""

    def __init__(self, value: Any):
        simple = (int, float, str, bool, tuple, type(None), complex)
        named = isinstance(value, type) or inspect.isroutine(value)
        if type(value) in simple or type(value).__name__ == "Size":
            self.text = repr(value).replace("flambeau", "torch")
        else:
            self.text = getattr(value, "__name__", "?") if named else type(value).__name__

    def __repr__(self) -> str:
        return self.text


def signatures(names: dict[str, Any], package: str = "torch") -> dict[str, dict[str, str]]:
    """Of each module the signatures of these names, where it has them."""
    found: dict[str, dict[str, str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in names:
            try:
                space = importlib.import_module(module.replace("torch", package, 1))
            except ImportError:
                continue
            found[module] = {name: text for name in names[module] if (text := _member(space, name))}
    return found


def _member(space: Any, path: str) -> str:
    value = space
    for name in path.split("."):
        try:
            value = getattr(value, name, None)
        except Exception:               # of a name that cannot be had here
            return ""
    return text_of(value) if callable(value) else ""
