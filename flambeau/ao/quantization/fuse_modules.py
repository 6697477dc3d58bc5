"""Modules in a row become one, in place of the first; the others become `Identity`."""
from __future__ import annotations

import copy
from operator import attrgetter
from typing import Any

from flambeau import nn
from flambeau.ao.quantization.fuser_method_mappings import get_fuser_method
from flambeau.nn.utils.parametrize import type_before_parametrizations


def _find(model: nn.Module, name: str) -> nn.Module:
    return attrgetter(name)(model)


def _set(model: nn.Module, name: str, module: nn.Module) -> None:
    path, _, last = name.rpartition(".")
    setattr(_find(model, path) if path else model, last, module)


def fuse_known_modules(mod_list: list[Any], is_qat: bool,
                       additional_fuser_method_mapping: Any = None) -> list[Any]:
    """The module that some modules become, and `Identity` for each but the first. Hooks before the
    first and behind the last go to the new one."""
    types = tuple(type_before_parametrizations(m) for m in mod_list)
    fuser = get_fuser_method(types, additional_fuser_method_mapping)
    if fuser is None:
        raise NotImplementedError(f"Cannot fuse modules: {types}")
    fused = fuser(is_qat, *mod_list)
    for key, hook in list(mod_list[0]._forward_pre_hooks.items()):
        fused.register_forward_pre_hook(hook)
        del mod_list[0]._forward_pre_hooks[key]
    for key, hook in list(mod_list[-1]._forward_hooks.items()):
        fused.register_forward_hook(hook)
        del mod_list[-1]._forward_hooks[key]
    rest = [nn.Identity().train(mod_list[0].training) for _ in mod_list[1:]]
    return [fused, *rest]


def _fuse(model: Any, modules_to_fuse: Any, is_qat: bool, inplace: bool, fuser_func: Any,
          custom: Any) -> Any:
    if not inplace:
        model = copy.deepcopy(model)
    more = (custom or {}).get("additional_fuser_method_mapping", {})
    rows = modules_to_fuse if all(isinstance(r, list | tuple) for r in modules_to_fuse) \
        else [modules_to_fuse]
    for names in rows:
        fused = fuser_func([_find(model, name) for name in names], is_qat, more)
        for name, module in zip(names, fused):
            _set(model, name, module)
    return model


def fuse_modules(model: nn.Module, modules_to_fuse: Any, inplace: bool = False,
                 fuser_func: Any = fuse_known_modules, fuse_custom_config_dict: Any = None) -> Any:
    """The model with modules in a row, by name, made one; for quantisation after training.

    >>> from flambeau.ao.quantization import fuse_modules
    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    >>> fuse_modules(model, ["0", "1", "2"])
    Sequential(
      (0): ConvReLU2d(
        (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
        (1): ReLU()
      )
      (1): Identity()
      (2): Identity()
    )
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(model: nn.Module, modules_to_fuse: Any, inplace: bool = False,
                     fuser_func: Any = fuse_known_modules, fuse_custom_config_dict: Any = None
                     ) -> Any:
    """`fuse_modules` for training: batch normalisation stays, to learn on."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)


__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]
