"""How `Module.to` and its kind convert parameters; each choice will be PyTorch's default one day.

>>> from flambeau import nn
>>> layer = nn.Linear(2, 3)
>>> weight = layer.weight
>>> set_overwrite_module_params_on_conversion(True)
>>> layer.double().weight is weight
False
>>> set_overwrite_module_params_on_conversion(False)
"""
from __future__ import annotations

_overwrites = _swaps = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a converted parameter is a new object; else the old one gets other data."""
    global _overwrites
    _overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Is a converted parameter a new object?"""
    return _overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether a parameter changes places with its converted self (`flambeau.utils.swap_tensors`):
    it stays the same object, whatever its type was."""
    global _swaps
    _swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """Does a parameter change places with its converted self?"""
    return _swaps


__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]
