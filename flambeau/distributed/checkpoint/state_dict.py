"""States of models and optimizers by names of parameters, whatever wraps the model.

The names are those of the model as it was written: without what `DistributedDataParallel`,
`FullyShardedDataParallel`, checkpoint wrappers and `compile` put before them. Optimizers' states
have these names in the place of numbers, so that they fit a model that is wrapped or sharded in
another way.
"""
from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._state_dict_utils import (
    _broadcast_state_dict,
    _distribute_state_dict,
    _gather_state_dict,
    _offload_state_dict_to_cpu,
)
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX
from flambeau.nn.modules.module import Module
from flambeau.optim import Optimizer

__all__ = ["FQNS_T", "DictValueType", "ListDictValueType", "OptimizerStateType", "PrimitiveType",
           "StateDictOptions", "ValueType", "get_model_state_dict", "get_optimizer_state_dict",
           "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
_FLAT_PARAM = "_flat_param"
_PG = "param_groups"
_PARAMS = "params"
_STATE = "state"

FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = Any         # a `PrimitiveType`, or lists, tuples and dicts of them
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, DictValueType | ListDictValueType]


@dataclass
class StateDictOptions:
    """How states are given and taken.

    full_state_dict         whole tensors in the place of those in pieces
    cpu_offload             in main memory; with `full_state_dict` at the first process only
    ignore_frozen_params    without parameters that require no gradient
    keep_submodule_prefixes names of submodules' states count from the model, not from them
    strict                  as in `load_state_dict`
    broadcast_from_rank0    the first process's whole state goes to all
    flatten_optimizer_state_dict  optimizers' states are flat, with dotted names
    """
    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


@dataclass
class _StateDictInfo(StateDictOptions):
    """The options of a call, and what is known of the model."""
    names: dict[int, set[str]] = field(default_factory=dict)        # of parameters, by identity
    parameters: dict[str, Tensor] = field(default_factory=dict)
    submodule_prefixes: set[str] = field(default_factory=set)
    handle_model: bool = True
    handle_optim: bool = True
    fsdp_modules: list[nn.Module] = field(default_factory=list)
    fsdp_context: Callable[[], Any] = contextlib.nullcontext


# ---- names --------------------------------------------------------------------------------------

def _wrapper_steps(module: Any) -> set[str]:
    """The attributes of wrappers through which a module is reached, which no name has."""
    from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
    from flambeau.nn.parallel import DistributedDataParallel as DDP
    if isinstance(module, DDP):
        return {"module"}
    if isinstance(module, FSDP):
        return {FSDP_WRAPPED_MODULE}
    return {"_orig_mod"} if "_orig_mod" in getattr(module, "_modules", {}) else set()


def _get_fqns(model: nn.Module, name: str, dsd_fqn_modifiers: str = "_fqn_modifiers",
              skip_ddp_prefix: bool = True, skip_compiler_prefix: bool = True) -> set[str]:
    """The names under which users know what is `name` in a wrapped model.

    >>> _get_fqns(nn.Sequential(nn.Linear(1, 1)), "0.weight")
    {'0.weight'}
    """
    name = name.replace(_CHECKPOINT_PREFIX, "")
    if "." not in name:
        return {name}
    parts, found = name.split("."), []
    current: Any = model
    for i, part in enumerate(parts):
        if part in _wrapper_steps(current) and (skip_ddp_prefix or part != "module") \
                and (skip_compiler_prefix or part != "_orig_mod"):
            current = current._modules[part]
            continue
        modifiers = getattr(current, dsd_fqn_modifiers, None)
        renamed = modifiers() if callable(modifiers) else {}
        found.append(part)
        if part in renamed and hasattr(current, renamed[part]):
            found.pop()
            part = renamed[part]
            current = getattr(current, part)
            continue
        if part == _FLAT_PARAM and i == len(parts) - 1:
            prefix = ".".join(found[:-1])
            return {f"{prefix}.{fqn}" if prefix else fqn for fqn in current._flat_param._fqns}
        current = None if i == len(parts) - 1 else getattr(current, part)
    return {".".join(found).replace(_CHECKPOINT_PREFIX, "")}


def _iterate_valid_model_state(model: nn.Module, dsd_fqn_modifiers: str = "_fqn_modifiers"
                               ) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers that a state has, shared ones under each of their names."""
    def walk(module: nn.Module, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, child in module._modules.items():
            if child is not None:
                yield from walk(child, f"{prefix}{name}.")
        for name, value in (*module._buffers.items(), *module._parameters.items()):
            if value is not None and name not in module._non_persistent_buffers_set:
                yield prefix + name, value
        if type(module).get_extra_state is not Module.get_extra_state:
            yield f"{prefix}_extra_state", None
    yield from walk(model, "")


# ---- options ------------------------------------------------------------------------------------

def _verify_options(model: nn.Module, optims: tuple[Optimizer, ...], optim_only: bool, *,
                    submodules: set[nn.Module] | None = None,
                    options: StateDictOptions | None = None) -> _StateDictInfo:
    if submodules:
        warnings.warn("Getting submodules only model/optim state_dict is deprecated and will be "
                      "removed in 2.5. This feature can be achieved by manually filtering out the "
                      "state_dict returned from get_state_dict.", FutureWarning, stacklevel=4)
    if optim_only and not optims:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    info = _StateDictInfo(**asdict(options), handle_model=not optim_only,
                          handle_optim=len(optims) > 0)
    for name, value in _iterate_valid_model_state(model, options.dsd_fqn_modifiers):
        if not isinstance(value, Tensor):
            continue
        fqns = _get_fqns(model, name, options.dsd_fqn_modifiers)
        info.names.setdefault(id(value), set()).update(fqns)
        info.parameters.update(dict.fromkeys(fqns, value))
    for path, module in model.named_modules():
        if submodules and module in submodules:
            (fqn,) = _get_fqns(model, path)
            info.submodule_prefixes.add(f"{fqn}." if fqn else "")
    _verify_fsdp(model, info)
    return info


def _verify_fsdp(model: nn.Module, info: _StateDictInfo) -> None:
    """Where parts of the model are `FullyShardedDataParallel`, let them give what is wanted."""
    from flambeau.distributed.fsdp import (
        FullOptimStateDictConfig,
        FullStateDictConfig,
        OptimStateDictConfig,
        ShardedOptimStateDictConfig,
        ShardedStateDictConfig,
        StateDictConfig,
        StateDictType,
    )
    from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
    info.fsdp_modules = list(FSDP.fsdp_modules(model))
    if not info.fsdp_modules:
        return
    model_config: StateDictConfig
    optim_config: OptimStateDictConfig
    if info.full_state_dict:
        model_config = FullStateDictConfig(offload_to_cpu=info.cpu_offload,
                                           rank0_only=info.cpu_offload)
        optim_config = FullOptimStateDictConfig(offload_to_cpu=info.cpu_offload,
                                                rank0_only=info.cpu_offload)
        kind = StateDictType.FULL_STATE_DICT
    else:
        model_config = ShardedStateDictConfig(offload_to_cpu=info.cpu_offload)
        optim_config = ShardedOptimStateDictConfig(offload_to_cpu=info.cpu_offload)
        kind = StateDictType.SHARDED_STATE_DICT
    info.fsdp_context = functools.partial(FSDP.state_dict_type, model, kind, model_config,
                                          optim_config)


def _state_dict_fn(obj: Any, api: str) -> Callable[..., Any]:
    """A method of a model or an optimizer, as it was before `_patch_model_state_dict`."""
    return functools.partial(getattr(type(obj), api), obj)


def _maybe_full_or_cpu_state_dict(state_dict: dict[str, Any],
                                  info: _StateDictInfo) -> dict[str, Any]:
    if info.full_state_dict:
        first = (0,) if info.cpu_offload and dist.is_initialized() else ()
        return _gather_state_dict(state_dict, cpu_offload=info.cpu_offload, ranks_only=first,
                                  type_check=False)
    if info.cpu_offload:
        return _offload_state_dict_to_cpu(state_dict, type_check=False)
    return state_dict


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


# ---- optimizers ---------------------------------------------------------------------------------

def _init_optim_state(optim: Optimizer) -> None:
    """Let an optimizer have a state: a step of length 0 along gradients that are 0. It is as if a
    step had been taken."""
    if optim.state:
        return
    for group in optim.param_groups:
        for parameter in group[_PARAMS]:
            if parameter.grad is not None:
                return
    for group in optim.param_groups:
        for parameter in group[_PARAMS]:
            if parameter.requires_grad:
                parameter.grad = flambeau.zeros_like(parameter)
    rates = []
    for group in optim.param_groups:
        if "lr" in group:
            rates.append(group["lr"])
            group["lr"] = flambeau.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optim.step(closure=None)
    for group in optim.param_groups:
        if "lr" in group:
            group["lr"] = rates.pop(0)
    optim.zero_grad(set_to_none=True)


def _flatten_optim_state_dict(state_dict: OptimizerStateType) -> dict[str, Any]:
    """A flat state: `state.{name}.{key}` and `param_groups.{name}.{option}`."""
    found: dict[str, Any] = {}
    for fqn, state in state_dict[_STATE].items():                   # type: ignore[union-attr]
        for key, value in state.items():
            found[f"{_STATE}.{fqn}.{key}"] = value
    for group in state_dict[_PG]:
        for fqn in group[_PARAMS]:                                  # type: ignore[index]
            for key, value in group.items():                        # type: ignore[union-attr]
                if key != _PARAMS:
                    found[f"{_PG}.{fqn}.{key}"] = value
    return found


def _unflatten_optim_state_dict(optim: Optimizer, state_dict: dict[str, Any],
                                info: _StateDictInfo) -> OptimizerStateType:
    """The state of a flat one, in the groups of an optimizer."""
    states: dict[str, Any] = {}
    groups = []
    for group in optim.param_groups:
        new: dict[str, Any] = {_PARAMS: []}
        for parameter in group[_PARAMS]:
            for fqn in info.names[id(parameter)]:
                new[_PARAMS].append(fqn)
                if parameter.requires_grad:
                    prefix = f"{_STATE}.{fqn}."
                    states[fqn] = {key.removeprefix(prefix): value
                                   for key, value in state_dict.items() if key.startswith(prefix)}
        first = new[_PARAMS][0] if new[_PARAMS] else None
        for key in group:
            if key == _PARAMS:
                continue
            values = {str(state_dict[f"{_PG}.{fqn}.{key}"]) for fqn in new[_PARAMS]
                      if f"{_PG}.{fqn}.{key}" in state_dict}
            if len(values) > 1:
                raise RuntimeError(f"All the parameters in the same parameter group should have "
                                   f"the same saved param_group value. But {key} has {values}.")
            new[key] = state_dict.get(f"{_PG}.{first}.{key}", group[key])
        groups.append(new)
    return {_STATE: states, _PG: groups}


def _with_names(optim: Optimizer, state: dict[str, Any], info: _StateDictInfo) -> None:
    """Put names in the place of numbers."""
    params = [p for group in optim.param_groups for p in group[_PARAMS]]
    fqn_of = {}
    for number, parameter in enumerate(params):
        if id(parameter) not in info.names:
            raise AssertionError(f"parameter {number} of the optimizer is not one of the model")
        fqn_of[number] = sorted(info.names[id(parameter)])[0]
    state[_STATE] = {fqn_of[number]: value for number, value in state[_STATE].items()}
    for group in state[_PG]:
        group[_PARAMS] = [fqn_of[number] for number in group[_PARAMS]]


def _get_optim_state_dict(model: nn.Module, optimizers: tuple[Optimizer, ...],
                          info: _StateDictInfo) -> OptimizerStateType:
    if not info.handle_optim:
        return {}
    found: dict[str, Any] = {_STATE: {}, _PG: []}
    for optim in optimizers:
        _init_optim_state(optim)
        state = _state_dict_fn(optim, "state_dict")()
        if info.fsdp_modules:
            from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
            with info.fsdp_context():
                state = FSDP.optim_state_dict(model, optim, state)
            if not state:
                continue
            _without_wrappers(model, state)
        else:
            _with_names(optim, state, info)
        if info.submodule_prefixes:
            _within(state, info)
        found[_STATE].update(state[_STATE])
        found[_PG].extend(state[_PG])
    if info.flatten_optimizer_state_dict:
        found = _flatten_optim_state_dict(found)
    return _maybe_full_or_cpu_state_dict(found, info)


def _without_wrappers(model: nn.Module, state: dict[str, Any]) -> None:
    for key in list(state[_STATE]):
        if "_orig_mod" in key or "module" in key:
            (fqn,) = _get_fqns(model, key)
            state[_STATE][fqn] = state[_STATE].pop(key)
    for group in state[_PG]:
        group[_PARAMS] = [fqn for key in group[_PARAMS] for fqn in _get_fqns(model, key)] \
            if any("module" in key or "_orig_mod" in key for key in group[_PARAMS]) \
            else group[_PARAMS]


def _within(state: dict[str, Any], info: _StateDictInfo) -> None:
    """Leave what is in the chosen submodules."""
    def inside(fqn: str) -> bool:
        return any(fqn.startswith(prefix) for prefix in info.submodule_prefixes)
    state[_STATE] = {fqn: value for fqn, value in state[_STATE].items() if inside(fqn)}
    for group in state[_PG]:
        group[_PARAMS] = [fqn for fqn in group[_PARAMS] if inside(fqn)]


def _split_optim_state_dict(model: nn.Module, optim: Optimizer,
                            optim_state_dict: OptimizerStateType,
                            info: _StateDictInfo) -> OptimizerStateType:
    """The part of a state that is one optimizer's, in its groups."""
    states: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    given: Any = optim_state_dict
    group_of: dict[int, int] = {}
    for group in optim.param_groups:
        groups.append({_PARAMS: []})
        for parameter in group[_PARAMS]:
            for fqn in sorted(info.names[id(parameter)]):
                known = any(fqn in loaded[_PARAMS] for loaded in given[_PG])
                if not known:
                    if info.strict and parameter.requires_grad and len(
                            info.names[id(parameter)]) == 1:
                        raise RuntimeError(f"optimizer state has no parameter {fqn}")
                    continue
                groups[-1][_PARAMS].append(fqn)
                if parameter.requires_grad and fqn in given[_STATE]:
                    states[fqn] = given[_STATE][fqn]
                for i, loaded in enumerate(given[_PG]):
                    if fqn in loaded[_PARAMS]:
                        group_of[i] = len(groups) - 1
    for i, loaded in enumerate(given[_PG]):
        if i in group_of:
            groups[group_of[i]].update({k: v for k, v in loaded.items() if k != _PARAMS})
    return {_STATE: states, _PG: groups}                            # type: ignore[dict-item]


def _load_optim_state_dict(model: nn.Module, optimizers: tuple[Optimizer, ...],
                           state_dict: OptimizerStateType, info: _StateDictInfo) -> None:
    if not info.handle_optim:
        return
    for optim in optimizers:
        _init_optim_state(optim)
        whole: Any = state_dict
        if info.broadcast_from_rank0:
            found = [whole if dist.get_rank() == 0 else None]
            dist.broadcast_object_list(found, src=0)
            whole = found[0]
        if not whole:
            continue
        if info.flatten_optimizer_state_dict:
            mine: Any = _unflatten_optim_state_dict(optim, whole, info)
        else:
            mine = _split_optim_state_dict(model, optim, whole, info)
        if info.fsdp_modules:
            from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
            with info.fsdp_context():
                mine = FSDP.optim_state_dict_to_load(model, optim, mine)
        else:
            mine = _with_numbers(optim, mine, info)
        _state_dict_fn(optim, "load_state_dict")(state_dict=mine)


def _with_numbers(optim: Optimizer, state: Any, info: _StateDictInfo) -> dict[str, Any]:
    """Put numbers in the place of names, and pieces in the place of whole tensors."""
    states, groups, number = {}, [], 0
    for group, loaded in zip(optim.param_groups, state[_PG]):
        numbers = []
        for parameter in group[_PARAMS]:
            for fqn in sorted(info.names[id(parameter)]):
                if fqn in state[_STATE]:
                    states[number] = {
                        key: _placed_like(value, parameter)
                        for key, value in state[_STATE][fqn].items()}
                    break
            numbers.append(number)
            number += 1
        groups.append({**{k: v for k, v in group.items() if k != _PARAMS},
                       **loaded, _PARAMS: numbers})
    return {_STATE: states, _PG: groups}


def _placed_like(value: Any, parameter: Tensor) -> Any:
    """A whole tensor in the pieces of its parameter."""
    from flambeau.distributed.tensor import DTensor, distribute_tensor
    if isinstance(parameter, DTensor) and isinstance(value, Tensor) \
            and not isinstance(value, DTensor) and value.shape == parameter.shape:
        return distribute_tensor(value, parameter.device_mesh, parameter.placements,
                                 src_data_rank=None)
    return value


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


def _patch_model_state_dict(model: nn.Module, *, options: StateDictOptions | None = None) -> None:
    """Let the model's own `state_dict` and `load_state_dict` be these functions."""
    model.state_dict = lambda: get_model_state_dict(model, options=options)
    model.load_state_dict = lambda state_dict: set_model_state_dict(
        model, model_state_dict=state_dict, options=options)


def _patch_optimizer_state_dict(model: nn.Module, *, optimizers: tuple[Optimizer, ...],
                                options: StateDictOptions | None = None) -> None:
    """Let the optimizers' own `state_dict` and `load_state_dict` be these functions."""
    for optim in _several(optimizers):
        optim.state_dict = lambda: get_optimizer_state_dict(    # type: ignore[method-assign]
            model, optimizers, options=options)
        optim.load_state_dict = (                               # type: ignore[method-assign]
            lambda state_dict: set_optimizer_state_dict(
                model, optimizers, optim_state_dict=state_dict, options=options))
