"""Which modules can be imported."""
from __future__ import annotations

import functools
import importlib.util
from types import ModuleType


def _check_module_exists(name: str) -> bool:
    """Can a module be imported? It isn't."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    """Can dill, which pickles functions too, be imported?"""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """dill, or None where it is not installed."""
    if not dill_available():
        return None
    import dill
    dill.extend(use_dill=False)                     # plain pickle stays as it is
    return dill
