"""Quantisation of scripted modules: graph mode on the module that was scripted.

A scripted module here is the Python module itself, so it is traced and quantised as `quantize_fx`
does, and scripted again.
"""
from __future__ import annotations

import copy
from typing import Any

from flambeau import jit
from flambeau.ao.quantization.qconfig import QConfig
from flambeau.jit._script import as_script


def _original(model: Any) -> Any:
    if not isinstance(model, jit.ScriptModule):
        raise ValueError("Only models on CPU that were made by torch.jit.script or torch.jit.trace "
                         "are supported: input must be a script module")
    return model._original


def _scripted(model: Any) -> Any:
    return as_script(model)


def script_qconfig(qconfig: QConfig) -> Any:
    """A `QConfig` of scripted observers."""
    return tuple.__new__(QConfig, [as_script(make()) for make in (qconfig.activation,
                                                                   qconfig.weight)])


def script_qconfig_dict(qconfig_dict: dict[str, Any]) -> dict[str, Any]:
    """A dictionary of such."""
    return {name: script_qconfig(qconfig) if qconfig else None
            for name, qconfig in qconfig_dict.items()}


def _mapping(qconfig_dict: dict[str, Any]) -> Any:
    from flambeau.ao.quantization.qconfig_mapping import QConfigMapping
    mapping = QConfigMapping()
    for name, qconfig in qconfig_dict.items():
        if name:
            mapping.set_module_name(name, qconfig)
        else:
            mapping.set_global(qconfig)
    return mapping


def fuse_conv_bn_jit(model: Any, inplace: bool = False) -> Any:
    """A scripted module in which batch normalisation is part of the convolution before it."""
    from flambeau.ao.quantization.quantize_fx import fuse_fx
    return _scripted(fuse_fx(copy.deepcopy(_original(model))))


def prepare_jit(model: Any, qconfig_dict: dict[str, Any], inplace: bool = False) -> Any:
    """A scripted module whose numbers are watched; `qconfig_dict` is by name of submodule."""
    from flambeau.ao.quantization.quantize_fx import prepare_fx
    return _scripted(prepare_fx(copy.deepcopy(_original(model)), _mapping(qconfig_dict), ()))


prepare_dynamic_jit = prepare_jit


def convert_jit(model: Any, inplace: bool = False, debug: bool = False,
                preserved_attrs: list[str] | None = None) -> Any:
    """A watched scripted module as one of quantised numbers."""
    from flambeau.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx
    return _scripted((convert_to_reference_fx if debug else convert_fx)(_original(model)))


convert_dynamic_jit = convert_jit


def quantize_jit(model: Any, qconfig_dict: dict[str, Any], run_fn: Any, run_args: Any,
                 inplace: bool = False, debug: bool = False) -> Any:
    """`prepare_jit`, `run_fn(model, *run_args)` to find scales, and `convert_jit`."""
    prepared = prepare_jit(model, qconfig_dict, inplace)
    run_fn(prepared, *run_args)
    return convert_jit(prepared, True, debug)


def quantize_dynamic_jit(model: Any, qconfig_dict: dict[str, Any], inplace: bool = False,
                         debug: bool = False) -> Any:
    """A scripted module that quantises what comes in to its products."""
    return convert_jit(prepare_jit(model, qconfig_dict, inplace), True, debug)


__all__ = ["convert_dynamic_jit", "convert_jit", "fuse_conv_bn_jit", "prepare_dynamic_jit",
           "prepare_jit", "quantize_dynamic_jit", "quantize_jit", "script_qconfig",
           "script_qconfig_dict"]
