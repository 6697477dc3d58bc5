"""States of optimizers: by the names of parameters, and back."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint.state_dict.options import (
    OptimizerStateType,
    _get_fqns,
    _maybe_full_or_cpu_state_dict,
    _placed_like,
    _state_dict_fn,
    _StateDictInfo,
)
from flambeau.optim import Optimizer

_PG = "param_groups"
_PARAMS = "params"
_STATE = "state"


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
    return {_STATE: states, _PG: groups}


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
