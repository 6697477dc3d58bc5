"""Switches of the whole process: warnings once or always, determinism, precision of products.

Those that name what NumPy on a CPU has no choice about are remembered and change nothing.
"""
from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from flambeau._support.c_functions import takes_one, type_name
from flambeau._support.own_methods import belong
from flambeau._support.source_locations import innermost_outside, native

_state: dict[str, Any] = {"warn_always": False, "deterministic": False, "warn_only": False,
                          "fills": True, "debug_mode": 0, "precision": "highest",
                          "flush_denormal": False}
_seen: set[Any] = set()


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once in a process are given every time."""
    _check_bool("setWarnOnlyOnce", b)       # its name in C
    _state["warn_always"] = bool(b)


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} expects a bool, but got {type_name(value)}")


def is_warn_always_enabled() -> bool:
    """Are warnings given every time?"""
    return _state["warn_always"]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line of the user's that led here, however many calls lie between."""
    here = sys._getframe(1)
    frame = innermost_outside(here) or here
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno,
                           frame.f_globals.get("__name__", "<string>"),
                           frame.f_globals.setdefault("__warningregistry__", {}))


def warn_once(message: str, category: type[Warning] = UserWarning, key: str = "") -> None:
    """Warn, unless this (or anything with that `key`) was said before in this process."""
    if (key or message) in _seen and not _state["warn_always"]:
        return
    _seen.add(key or message)
    warn_user(message, category)


def warn_of_lost_parts(array: Any, dtype: Any) -> None:
    """Say once that complex numbers become real ones, if they do."""
    if array.dtype.kind in "cW" and dtype.kind not in "cWb":
        warn_once("Casting complex values to real discards the imaginary part")


def warn_of_complex_half() -> None:
    """Say once that few ops have kernels for complex32, as where memory for it is taken."""
    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Refuse the few ops that PyTorch calls nondeterministic on CPUs, or with `warn_only` warn of
    them. Here every op gives the same result in every run, with any number of threads."""
    for where, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument {where} must be bool, not "
                            f"{type_name(value)}")
    _state.update(deterministic=mode, warn_only=warn_only)
    _sync_fill_setting()


def fill_uninitialized_memory(mode: bool) -> None:
    """Whether memory that a program has not written is filled with known values while
    deterministic algorithms are wanted."""
    _state["fills"] = mode
    _sync_fill_setting()


def _sync_fill_setting() -> None:
    if native is not None:
        native.fill_new_memory(_state["deterministic"] and _state["fills"])


def filled_if_deterministic(array: np.ndarray) -> np.ndarray:
    """New memory: NaN, True or the greatest integer if deterministic algorithms are wanted."""
    if _state["deterministic"] and _state["fills"]:
        kind = array.dtype.kind
        array[...] = kind == "b" or (np.iinfo(array.dtype).max if kind in "iu" else np.nan)
    return array


def alert_not_deterministic(name: str) -> None:
    """Say that an op may differ from run to run in PyTorch, if deterministic ones are wanted.
    What computes here does not, but programs are to fail alike."""
    if not _state["deterministic"]:
        return
    said = f"{name} does not have a deterministic implementation, but you set "
    if _state["warn_only"]:
        warnings.warn(
            f"{said}'torch.use_deterministic_algorithms(True, warn_only=True)'. You can file an "
            "issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
            "deterministic support for this operation.", stacklevel=2)
        return
    raise RuntimeError(
        f"{said}'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for "
        "this operation, or you can use the 'warn_only=True' option, if that's acceptable for your "
        "application. You can also file an issue at https://github.com/pytorch/pytorch/issues to "
        "help us prioritize adding deterministic support for this operation.")


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was told."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` was told by `warn_only`."""
    return _state["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by number or name: "default", "warn" or "error"."""
    names: dict[Any, int] = {"default": 0, "warn": 1, "error": 2}
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode: Any = names.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        wanted = "one of `default`, `warn`, `error`" if isinstance(mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {wanted}, but got {debug_mode}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: any algorithm; 1: warn about others than deterministic ones; 2: raise."""
    if not _state["deterministic"]:
        return 0
    return 1 if _state["warn_only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered: "highest", "high" or "medium". Products of float32 are always computed in it."""
    if not isinstance(precision, str):
        raise RuntimeError("set_float32_matmul_precision expects a str, but got "
                           f"{type_name(precision)}")
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the "
                      "currentsetFloat32MatmulPrecision call has no effect.", UserWarning,
                      stacklevel=2)
        return
    _state["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told."""
    return _state["precision"]


@takes_one
def set_flush_denormal(mode: bool) -> bool:
    """Let arithmetic of this thread take denormal numbers, such as 1e-310, as zero, or not.

    Gives False, and changes nothing, without the native kernels or on other processors than x86.
    """
    from flambeau import kernels
    _check_bool("flush_denormal", mode)
    return kernels.set_flush_denormal(bool(mode))


__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
           "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled",
           "is_warn_always_enabled", "set_deterministic_debug_mode", "set_float32_matmul_precision",
           "set_flush_denormal", "set_warn_always", "use_deterministic_algorithms"]


belong(__name__.partition(".")[0], are_deterministic_algorithms_enabled,
       get_deterministic_debug_mode, get_float32_matmul_precision,
       is_deterministic_algorithms_warn_only_enabled, is_warn_always_enabled,
       set_deterministic_debug_mode, set_float32_matmul_precision, set_warn_always,
       use_deterministic_algorithms)
