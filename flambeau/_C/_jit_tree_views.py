"""The syntax trees of TorchScript. Not offered: there is no compiler that reads them."""
from __future__ import annotations

from typing import Any


class SourceRangeFactory:
    """Where source is. None is made."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch._C._jit_tree_views.SourceRangeFactory: flambeau has no "
                                  "compiler of TorchScript")


class SourceRange:
    """A piece of source. None is made."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError("torch._C._jit_tree_views.SourceRange: No constructor defined!")
