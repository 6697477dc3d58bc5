"""Helpers around dispatch modes."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from flambeau.dispatch.aten import subclass
from flambeau.utils._python_dispatch import _disable_current_modes


class no_dispatch(_disable_current_modes):
    """Inside, no `__torch_dispatch__` is asked, neither those of modes nor those of subclasses."""

    def _changes(self) -> Any:
        return (*super()._changes(), (subclass.disabled, True))


class _DisableTorchDispatch:
    """The same, from when the guard is made until it is gone: `torch._C._DisableTorchDispatch`."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._open.enter_context(no_dispatch())

    def __enter__(self) -> _DisableTorchDispatch:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open.close()

    def __del__(self) -> None:
        self._open.close()


def all_same_mode(modes: Any) -> bool:
    """Are these all the same mode?

    >>> all_same_mode([1, 1]), all_same_mode([1, 2]), all_same_mode([])
    (True, False, True)
    """
    return all(mode == modes[0] for mode in modes)


__all__ = ["_DisableTorchDispatch", "all_same_mode", "no_dispatch"]
