"""Eager mode: modules are watched, then swapped for quantised ones.

>>> from flambeau.ao import quantization as Q
>>> model = nn.Sequential(Q.QuantStub(), nn.Linear(2, 2), Q.DeQuantStub()).eval()
>>> model.qconfig = Q.get_default_qconfig("x86")
>>> prepared = Q.prepare(model)
>>> _ = prepared(flambeau.ones(1, 2))
>>> [type(m).__name__ for m in Q.convert(prepared)]
['Quantize', 'Linear', 'DeQuantize']
"""
from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.deprecation import deprecated
from flambeau.ao.nn import quantizable
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn.intrinsic import _FusedModule
from flambeau.ao.quantization import qconfig as qconfigs
from flambeau.ao.quantization.observer import _is_activation_post_process
from flambeau.ao.quantization.quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from flambeau.ao.quantization.stubs import DeQuantStub, QuantWrapper
from flambeau.ao.quantization.utils import DEPRECATION_WARNING, get_qparam_dict
from flambeau.nn.utils.parametrize import type_before_parametrizations

_CUSTOM_CLASSES: dict[str, dict[Any, Any]] = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: quantizable.LSTM, nn.MultiheadAttention: quantizable.MultiheadAttention},
    "observed_to_quantized_custom_module_class": {
        quantizable.LSTM: nnq.LSTM, quantizable.MultiheadAttention: nnq.MultiheadAttention}}


def get_default_custom_config_dict() -> dict[str, dict[Any, Any]]:
    """Classes that are observed, and then quantised, by a class of their own."""
    return _CUSTOM_CLASSES


# ---- who is to be quantised how -----------------------------------------------------------------


def propagate_qconfig_(module: nn.Module, qconfig_dict: dict[Any, Any] | None = None,
                       prepare_custom_config_dict: dict[str, Any] | None = None) -> None:
    """Give every submodule its `qconfig`: its own, the dictionary's by name or class, or the
    parent's.

    >>> from flambeau.ao import quantization as Q
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> Q.propagate_qconfig_(model, {"0": Q.default_qconfig})
    >>> model[0].qconfig is Q.default_qconfig, model[1].qconfig
    (True, None)
    """
    _propagate(module, {} if qconfig_dict is None else qconfig_dict, None, "",
               {} if prepare_custom_config_dict is None else prepare_custom_config_dict)


def _propagate(module: Any, table: dict[Any, Any], inherited: Any, name: str,
               custom: dict[str, Any]) -> None:
    qconfig = table.get(type_before_parametrizations(module), inherited)
    qconfig = table.get(name, qconfig)
    qconfig = getattr(module, "qconfig", qconfig)
    qconfigs._assert_valid_qconfig(qconfig, module)
    module.qconfig = qconfig
    for child_name, child in module.named_children():
        if child_name in custom.get("non_traceable_module_name", []) or type(
                child) in custom.get("non_traceable_module_class", []):
            continue
        _propagate(child, table, qconfig, f"{name}.{child_name}" if name else child_name, {})


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Wrap every module without children that has a `qconfig` in a `QuantWrapper`, in place."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


# ---- watching -----------------------------------------------------------------------------------


def _observer_forward_hook(self: Any, input: Any, output: Tensor) -> Tensor:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Tensor:
    return self.activation_post_process(input[0])


def _watch(module: Any, special: Any = None) -> None:
    """Watch what a module gives (or takes, if the watcher does not remember)."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (special or module.qconfig.activation)())
    if qconfigs._activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observer_(module: nn.Module, qconfig_propagation_list: Any = None,
                   non_leaf_module_list: Any = None, device: Any = None,
                   custom_module_class_mapping: Any = None) -> None:
    watched = qconfig_propagation_list or get_default_qconfig_propagation_list()
    custom = custom_module_class_mapping or {}
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        wanted = getattr(child, "qconfig", None) is not None
        if kind is nn.Dropout:
            continue
        if issubclass(kind, nnq.FloatFunctional | nnq.QFunctional):
            if wanted:
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or kind in (non_leaf_module_list or ()):
            _watch(child)
        elif _has_special_act_post_process(child):
            _watch(child, _get_special_act_post_process(child))
        elif wanted and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not isinstance(observed, tuple(no_observer_set())):
                _watch(observed)
        else:
            _add_observer_(child, watched, non_leaf_module_list, device, custom)
    leaf = not [m for n, m in module.named_children() if n != "parametrizations"]
    if type_before_parametrizations(module) in watched and not isinstance(
            module, nn.Sequential) and (leaf or hasattr(module, "weight_fake_quant")):
        _watch(module)


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def prepare(model: nn.Module, inplace: bool = False, allow_list: Any = None,
            observer_non_leaf_module_list: Any = None, prepare_custom_config_dict: Any = None
            ) -> Any:
    """A copy of the model (or the model) whose modules with a `qconfig` are watched.

    Run it on some data, then `convert` it.
    """
    custom = prepare_custom_config_dict or get_default_custom_config_dict()
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn("None of the submodule got qconfig applied. Make sure you passed correct "
                      "configuration through `qconfig_dict` or by assigning the `.qconfig` "
                      "attribute directly on submodules", stacklevel=2)
    _add_observer_(model, allow_list, observer_non_leaf_module_list,
                   custom_module_class_mapping=custom.get("float_to_observed_custom_module_class"))
    return model


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def prepare_qat(model: nn.Module, mapping: Any = None, inplace: bool = False) -> Any:
    """A copy of the model (or the model) that trains with rounded weights and results."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = mapping or get_default_qat_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(mapping.values()))


# ---- swapping -----------------------------------------------------------------------------------


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def convert(module: nn.Module, mapping: Any = None, inplace: bool = False,
            remove_qconfig: bool = True, is_reference: bool = False,
            convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False
            ) -> Any:
    """A copy of the model (or the model) whose submodules are swapped as `mapping` says, by the
    target's `from_float`."""
    if not inplace:
        module = copy.deepcopy(module)
    if mapping is None:
        mapping = get_default_static_quant_reference_module_mappings() if is_reference \
            else get_default_static_quant_module_mappings()
    custom = (convert_custom_config_dict or get_default_custom_config_dict()).get(
        "observed_to_quantized_custom_module_class", {})
    _convert(module, mapping, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module: nn.Module, mapping: Any, custom: Any, precomputed: bool) -> None:
    swapped = {}
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        as_one = isinstance(child, _FusedModule) or hasattr(child, "weight_fake_quant")
        if not as_one and kind not in custom:
            _convert(child, mapping, custom, precomputed)
        swapped[name] = swap_module(child, mapping, custom, precomputed)
    module._modules.update(swapped)


def swap_module(mod: Any, mapping: Any, custom_module_class_mapping: Any,
                use_precomputed_fake_quant: bool = False) -> Any:
    """What a module with a `qconfig` becomes as the mappings say; hooks of the user's stay."""
    kind = type_before_parametrizations(mod)
    if getattr(mod, "qconfig", None) is None:
        return mod
    if kind in custom_module_class_mapping:
        result = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        result = _from_float(mapping[kind], mod, use_precomputed_fake_quant)
    else:
        return mod
    for pre_hook in mod._forward_pre_hooks.values():
        if pre_hook is not _observer_forward_pre_hook:
            result.register_forward_pre_hook(pre_hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            result.register_forward_hook(hook)
    return result


def _from_float(target: Any, mod: Any, precomputed: bool) -> Any:
    if getattr(target, "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        return target.from_float(mod, get_qparam_dict(observer))
    if "use_precomputed_fake_quant" in inspect.signature(target.from_float).parameters:
        return target.from_float(mod, use_precomputed_fake_quant=precomputed)
    return target.from_float(mod)


def _remove_qconfig(module: Any) -> None:
    """Take away what watches, and the configurations."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    watcher = getattr(module, "activation_post_process", None)
    if watcher is not None and _is_activation_post_process(watcher):
        delattr(module, "activation_post_process")
    for hooks, own in ((module._forward_pre_hooks, _observer_forward_pre_hook),
                       (module._forward_hooks, _observer_forward_hook)):
        for key in [key for key, hook in hooks.items() if hook is own]:
            hooks.pop(key)


# ---- all at once --------------------------------------------------------------------------------


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def quantize(model: nn.Module, run_fn: Any, run_args: Any, mapping: Any = None,
             inplace: bool = False) -> Any:
    """`prepare`, `run_fn(model, *run_args)` to find scales, and `convert`."""
    mapping = mapping or get_default_static_quant_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def quantize_qat(model: nn.Module, run_fn: Any, run_args: Any, inplace: bool = False) -> Any:
    """`prepare_qat`, `run_fn(model, *run_args)` to train, and `convert`."""
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


_RECURRENT = (nn.LSTM, nn.GRU, nn.RNNCell, nn.GRUCell, nn.LSTMCell)


def _dynamic_qconfigs(dtype: Any) -> dict[Any, Any]:
    if dtype in (flambeau.qint8, flambeau.float16):
        qconfig = qconfigs.default_dynamic_qconfig if dtype is flambeau.qint8 \
            else qconfigs.float16_dynamic_qconfig
        return dict.fromkeys((nn.Linear, *_RECURRENT), qconfig)
    if dtype is flambeau.quint8:
        return dict.fromkeys((nn.EmbeddingBag, nn.Embedding),
                             qconfigs.float_qparams_weight_only_qconfig)
    if dtype is flambeau.quint4x2:
        return {nn.EmbeddingBag: qconfigs.float_qparams_weight_only_qconfig_4bit}
    raise ValueError("Don't know how to quantize with default settings for "
                     f"{dtype}. Provide full qconfig please")


@deprecated(DEPRECATION_WARNING, DeprecationWarning)
def quantize_dynamic(model: nn.Module, qconfig_spec: Any = None, dtype: Any = flambeau.qint8,
                     mapping: Any = None, inplace: bool = False) -> Any:
    """The model with quantised weights; what comes in is quantised as it comes.

    `qconfig_spec` is a set of classes or names of submodules, or a dictionary with a qconfig for
    each; without it, linear and recurrent modules (or embeddings, if `dtype` is for them).

    >>> from flambeau.ao.quantization import quantize_dynamic
    >>> quantize_dynamic(nn.Sequential(nn.LSTM(2, 3)))
    Sequential(
      (0): DynamicQuantizedLSTM(2, 3)
    )
    """
    if qconfig_spec is None:
        qconfig_spec = _dynamic_qconfigs(dtype)
    elif isinstance(qconfig_spec, set):
        usual = {flambeau.qint8: qconfigs.default_dynamic_qconfig,
                 flambeau.float16: qconfigs.float16_dynamic_qconfig,
                 flambeau.quint8: qconfigs.float_qparams_weight_only_qconfig,
                 flambeau.quint4x2: qconfigs.float_qparams_weight_only_qconfig_4bit}
        if dtype not in usual:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, usual[dtype])
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping or get_default_dynamic_quant_module_mappings(), inplace=True)


__all__ = ["add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare",
           "prepare_qat", "propagate_qconfig_", "quantize", "quantize_dynamic", "quantize_qat",
           "swap_module"]
