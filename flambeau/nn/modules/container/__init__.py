"""Modules that hold modules or parameters."""

from __future__ import annotations

from flambeau._support.own_methods import adopt
from flambeau.nn.modules.container.modules import (
    Container,
    ModuleDict,
    ModuleList,
    Sequential,
    _pairs,
)
from flambeau.nn.modules.container.parameters import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

adopt(globals(), "nn.modules.container.")
