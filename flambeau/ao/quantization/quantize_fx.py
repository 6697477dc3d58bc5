"""Graph mode: the model is traced, modules in a row are made one, results are watched, and the
whole is lowered to quantised ops. Functions are quantised like modules.

>>> from flambeau.ao.quantization import get_default_qconfig_mapping
>>> from flambeau.ao.quantization.quantize_fx import convert_fx, prepare_fx
>>> x = flambeau.ones(1, 2)
>>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval()
>>> prepared = prepare_fx(model, get_default_qconfig_mapping(), (x,))
>>> _ = prepared(x)
>>> type(getattr(convert_fx(prepared), "0")).__name__
'LinearReLU'
"""
from __future__ import annotations

import copy
from typing import Any

from flambeau import nn
from flambeau._support.deprecation import deprecated
from flambeau.ao.quantization.fx.convert import convert as _lower
from flambeau.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)
from flambeau.ao.quantization.fx.fuse import fuse as _fuse
from flambeau.ao.quantization.fx.prepare import QConfigFinder, QuantizationTracer, watch
from flambeau.ao.quantization.qconfig_mapping import QConfigMapping
from flambeau.ao.quantization.quantization_mappings import get_default_qat_module_mappings
from flambeau.ao.quantization.quantize import swap_module
from flambeau.ao.quantization.utils import DEPRECATION_WARNING
from flambeau.fx import GraphModule

__all__ = ["convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _settings(kind: Any, given: Any) -> Any:
    if given is None:
        return kind()
    return kind.from_dict(given) if isinstance(given, dict) else given


def _no_backend(backend_config: Any) -> None:
    if backend_config is not None:
        raise NotImplementedError("quantize_fx: backend_config")


def _traced(model: nn.Module, names: Any = (), classes: Any = ()) -> tuple[GraphModule, Any]:
    tracer = QuantizationTracer(list(names), list(classes))
    graph = tracer.trace(model)
    return GraphModule(tracer.root, graph), tracer.scopes


def _with_attributes(result: Any, model: Any, names: list[str]) -> Any:
    for name in names:
        setattr(result, name, getattr(model, name))
    return result


def fuse_fx(model: nn.Module, fuse_custom_config: Any = None, backend_config: Any = None
            ) -> GraphModule:
    """The traced model with modules in a row, such as a convolution and batch normalisation, made
    one.

    >>> from flambeau.ao.quantization.quantize_fx import fuse_fx
    >>> fuse_fx(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()).code.count("self")
    2
    """
    _no_backend(backend_config)
    custom = _settings(FuseCustomConfig, fuse_custom_config)
    fused = _fuse(_traced(copy.deepcopy(model))[0], False)
    return _with_attributes(fused, model, custom.preserved_attributes)


def _prepare(model: nn.Module, qconfig_mapping: Any, custom: Any, is_qat: bool) -> GraphModule:
    custom = _settings(PrepareCustomConfig, custom)
    mapping = QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) \
        else qconfig_mapping
    model = copy.deepcopy(model)
    traced, scopes = _traced(model, custom.non_traceable_module_names,
                             custom.non_traceable_module_classes)
    traced = _fuse(traced, is_qat)
    find = QConfigFinder(mapping, traced, scopes)
    if is_qat:
        _train_with_rounded_weights(traced, QConfigFinder(mapping, traced, scopes))
    result = watch(traced, find, custom)
    return _with_attributes(result, model, custom.preserved_attributes)


def _train_with_rounded_weights(model: GraphModule, find: QConfigFinder) -> None:
    mapping = get_default_qat_module_mappings()
    for node in model.graph.nodes:
        if node.op != "call_module":
            continue
        module = model.get_submodule(node.target)
        module.qconfig = find(node)
        path, _, name = node.target.rpartition(".")
        setattr(model.get_submodule(path), name, swap_module(module, mapping, {}))


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def prepare_fx(model: nn.Module, qconfig_mapping: Any, example_inputs: tuple[Any, ...],
               prepare_custom_config: Any = None, _equalization_config: Any = None,
               backend_config: Any = None) -> GraphModule:
    """The traced model with observers, for quantisation after training.

    `qconfig_mapping` (a `QConfigMapping` or a dictionary) says what is to be quantised how. Run the
    result on some data, then `convert_fx` it.
    """
    _no_backend(backend_config)
    if _equalization_config is not None:
        raise NotImplementedError("prepare_fx: _equalization_config")
    return _prepare(model, qconfig_mapping, prepare_custom_config, False)


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def prepare_qat_fx(model: nn.Module, qconfig_mapping: Any, example_inputs: tuple[Any, ...],
                   prepare_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """The traced model with rounded weights and results, to train."""
    _no_backend(backend_config)
    return _prepare(model, qconfig_mapping, prepare_custom_config, True)


def _convert(model: Any, custom: Any, lower: bool) -> GraphModule:
    custom = _settings(ConvertCustomConfig, custom)
    made = _lower(model, is_reference=not lower)
    return _with_attributes(made, model, custom.preserved_attributes)


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def convert_fx(graph_module: GraphModule, convert_custom_config: Any = None,
               _remove_qconfig: bool = True, qconfig_mapping: Any = None,
               backend_config: Any = None, keep_original_weights: bool = False) -> GraphModule:
    """What `prepare_fx` or `prepare_qat_fx` gave, with quantised ops."""
    _no_backend(backend_config)
    return _convert(graph_module, convert_custom_config, True)


def convert_to_reference_fx(graph_module: GraphModule, convert_custom_config: Any = None,
                            _remove_qconfig: bool = True, qconfig_mapping: Any = None,
                            backend_config: Any = None) -> GraphModule:
    """What `prepare_fx` gave, with float ops between steps that quantise and dequantise."""
    _no_backend(backend_config)
    return _convert(graph_module, convert_custom_config, False)
