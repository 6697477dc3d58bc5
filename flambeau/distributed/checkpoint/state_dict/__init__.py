"""States of models and optimizers by names of parameters, whatever wraps the model.

The names are those of the model as it was written: without what `DistributedDataParallel`,
`FullyShardedDataParallel`, checkpoint wrappers and `compile` put before them. Optimizers' states
have these names in the place of numbers, so that they fit a model that is wrapped or sharded in
another way.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import adopt
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._state_dict_utils import _broadcast_state_dict, _distribute_state_dict
from flambeau.distributed.checkpoint.state_dict.optimizers import (
    _get_optim_state_dict,
    _init_optim_state,
    _load_optim_state_dict,
)
from flambeau.distributed.checkpoint.state_dict.options import (
    FQNS_T,
    FSDP_WRAPPED_MODULE,
    DictValueType,
    ListDictValueType,
    OptimizerStateType,
    PrimitiveType,
    StateDictOptions,
    ValueType,
    _get_fqns,
    _iterate_valid_model_state,
    _maybe_full_or_cpu_state_dict,
    _state_dict_fn,
    _StateDictInfo,
    _verify_options,
)
from flambeau.optim import Optimizer

__all__ = ["FQNS_T", "DictValueType", "ListDictValueType", "OptimizerStateType", "PrimitiveType",
           "StateDictOptions", "ValueType", "get_model_state_dict", "get_optimizer_state_dict",
           "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]


# ---- models -------------------------------------------------------------------------------------

def _get_model_state_dict(model: nn.Module, info: _StateDictInfo) -> dict[str, Any]:
    if not info.handle_model:
        return {}
    with info.fsdp_context():
        state = _state_dict_fn(model, "state_dict")()
    for key in list(state):
        (fqn,) = _get_fqns(model, key, info.dsd_fqn_modifiers)
        if fqn != key:
            state[fqn] = state.pop(key)
    if info.submodule_prefixes:
        chosen = {}
        for fqn, value in state.items():
            for prefix in info.submodule_prefixes:
                if fqn.startswith(prefix):
                    chosen[fqn if info.keep_submodule_prefixes
                           else fqn.removeprefix(prefix)] = value
        state = chosen
    if info.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                for fqn in _get_fqns(model, name):
                    state.pop(fqn, None)
    return _maybe_full_or_cpu_state_dict(state, info)


def _load_model_state_dict(model: nn.Module, state_dict: dict[str, Any],
                           info: _StateDictInfo) -> Any:
    from flambeau.nn.modules.module import _IncompatibleKeys
    if not info.handle_model or (not state_dict and not info.broadcast_from_rank0):
        return _IncompatibleKeys([], [])
    own: dict[str, Any] = {}
    for key, value in _iterate_valid_model_state(model, info.dsd_fqn_modifiers):
        fqns = _get_fqns(model, key, info.dsd_fqn_modifiers)
        inner = _get_fqns(model, key, info.dsd_fqn_modifiers, skip_ddp_prefix=False,
                          skip_compiler_prefix=False)
        for fqn, loaded in zip(sorted(fqns), sorted(inner)):
            if (not info.broadcast_from_rank0 or dist.get_rank() == 0) \
                    and fqn != loaded and fqn in state_dict:
                state_dict[loaded] = state_dict.pop(fqn)
            own[loaded] = value
    if info.broadcast_from_rank0 or (info.full_state_dict and not info.fsdp_modules):
        device = flambeau.device("cpu")
        whole = {} if info.fsdp_modules else {
            key: value for key, value in own.items() if isinstance(value, Tensor)}
        if info.broadcast_from_rank0:
            _broadcast_state_dict(state_dict, whole, device=device,
                                  strict=info.strict and not info.fsdp_modules)
        else:
            _distribute_state_dict(state_dict, whole, device=device)
        state_dict.update(whole)
    with info.fsdp_context():
        return _state_dict_fn(model, "load_state_dict")(state_dict=state_dict,
                                                        strict=info.strict)


# ---- what users call ----------------------------------------------------------------------------

def _several(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def get_model_state_dict(model: nn.Module, *, submodules: set[nn.Module] | None = None,
                         options: StateDictOptions | None = None) -> dict[str, ValueType]:
    """The state of a model, by the names that it has without wrappers.

    >>> list(get_model_state_dict(nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    info = _verify_options(model, (), optim_only=False, submodules=submodules, options=options)
    return _get_model_state_dict(model, info)


def get_optimizer_state_dict(model: nn.Module, optimizers: Optimizer | Iterable[Optimizer], *,
                             submodules: set[nn.Module] | None = None,
                             options: StateDictOptions | None = None) -> OptimizerStateType:
    """The state of optimizers, by the names of the model's parameters.

    >>> layer = nn.Linear(2, 1)
    >>> optimizer = flambeau.optim.Adam(layer.parameters())
    >>> list(get_optimizer_state_dict(layer, optimizer)["state"])
    ['weight', 'bias']
    """
    optims = _several(optimizers)
    info = _verify_options(model, optims, optim_only=True, submodules=submodules, options=options)
    return _get_optim_state_dict(model, optims, info)


def get_state_dict(model: nn.Module, optimizers: Optimizer | Iterable[Optimizer], *,
                   submodules: set[nn.Module] | None = None,
                   options: StateDictOptions | None = None
                   ) -> tuple[dict[str, ValueType], OptimizerStateType]:
    """The states of a model and of its optimizers."""
    optims = _several(optimizers)
    info = _verify_options(model, optims, optim_only=False, submodules=submodules,
                           options=options)
    return _get_model_state_dict(model, info), _get_optim_state_dict(model, optims, info)


def _unflatten_model_state_dict(model: nn.Module, state_dict: dict[Any, Any]) -> dict[str, Any]:
    """States of submodules, by the submodules, as one of the model."""
    if not state_dict or not isinstance(next(iter(state_dict)), nn.Module):
        return state_dict
    warnings.warn("Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]`` is "
                  "deprecated and will be removed in 2.5. If you need this feature, please "
                  "preprocessing the model_state_dict to achieve the same functionality.",
                  FutureWarning, stacklevel=3)
    found: dict[str, Any] = {}
    for submodule, state in state_dict.items():
        for name, module in model.named_modules():
            if module is submodule:
                (fqn,) = _get_fqns(model, name)
                prefix = f"{fqn}." if fqn else ""
                found |= {prefix + key: value for key, value in state.items()}
    return found


def set_model_state_dict(model: nn.Module, model_state_dict: dict[str, ValueType], *,
                         options: StateDictOptions | None = None) -> Any:
    """Let a model have a state that `get_model_state_dict` gave; tells what did not fit.

    >>> layer = nn.Linear(2, 1)
    >>> set_model_state_dict(layer, get_model_state_dict(nn.Linear(2, 1)))
    <All keys matched successfully>
    """
    state = _unflatten_model_state_dict(model, model_state_dict)
    info = _verify_options(model, (), optim_only=False, options=options)
    return _load_model_state_dict(model, dict(state), info)


def set_optimizer_state_dict(model: nn.Module, optimizers: Optimizer | Iterable[Optimizer],
                             optim_state_dict: OptimizerStateType, *,
                             options: StateDictOptions | None = None) -> None:
    """Let optimizers have a state that `get_optimizer_state_dict` gave."""
    optims = _several(optimizers)
    info = _verify_options(model, optims, optim_only=True, options=options)
    _load_optim_state_dict(model, optims, optim_state_dict, info)


def set_state_dict(model: nn.Module, optimizers: Optimizer | Iterable[Optimizer], *,
                   model_state_dict: dict[str, ValueType],
                   optim_state_dict: OptimizerStateType,
                   options: StateDictOptions | None = None) -> Any:
    """Let a model and its optimizers have states that `get_state_dict` gave."""
    state = _unflatten_model_state_dict(model, model_state_dict)
    optims = _several(optimizers)
    info = _verify_options(model, optims, optim_only=not model_state_dict, options=options)
    _load_optim_state_dict(model, optims, optim_state_dict, info)
    return _load_model_state_dict(model, dict(state), info)


def _patch_model_state_dict(model: Any, *, options: StateDictOptions | None = None) -> None:
    """Let the model's own `state_dict` and `load_state_dict` be these functions."""
    model.state_dict = lambda: get_model_state_dict(model, options=options)
    model.load_state_dict = lambda state_dict: set_model_state_dict(
        model, model_state_dict=state_dict, options=options)


def _patch_optimizer_state_dict(model: nn.Module, *, optimizers: tuple[Optimizer, ...],
                                options: StateDictOptions | None = None) -> None:
    """Let the optimizers' own `state_dict` and `load_state_dict` be these functions."""
    for optim in _several(optimizers):
        optim.state_dict = lambda: get_optimizer_state_dict(
            model, optimizers, options=options)
        optim.load_state_dict = (
            lambda state_dict: set_optimizer_state_dict(
                model, optimizers, optim_state_dict=state_dict, options=options))

adopt(globals(), "distributed.checkpoint.state_dict.")
