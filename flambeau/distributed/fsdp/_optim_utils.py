"""States of optimizers of wrapped modules: whole, or of this process's parts."""
from __future__ import annotations

import copy
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.fsdp._common_utils import _get_param_to_fqns
from flambeau.distributed.fsdp._flat_param import FlatParamHandle
from flambeau.distributed.fsdp._state_dict_utils import _whole_of
from flambeau.distributed.fsdp._traversal_utils import _get_fsdp_states
from flambeau.optim import Optimizer

Names = dict[nn.Parameter, list[str]]


def _handle_of(model: nn.Module) -> dict[int, tuple[FlatParamHandle, int | None]]:
    """The handle of each parameter, by identity, and which of the handle's it is; None for a flat
    one."""
    found: dict[int, tuple[FlatParamHandle, int | None]] = {}
    for state in _get_fsdp_states(model):
        handle: Any = state._handle
        if handle is None:
            continue
        found[id(handle.flat_param)] = handle, None
        for i, param in enumerate(handle.flat_param._params or ()):
            found[id(param)] = handle, i
    return found


def _is_part(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0


# ---- to names -----------------------------------------------------------------------------------

def _optim_state_dict(model: nn.Module, optim: Optimizer, optim_state_dict: dict[str, Any],
                      sharded: bool, rank0_only: bool, cpu_offload: bool) -> dict[str, Any]:
    """An optimizer's state with whole tensors, or sharded ones, by names of parameters."""
    names = _get_param_to_fqns(model)
    handles = _handle_of(model)
    params = [p for group in optim.param_groups for p in group["params"]]
    given = optim_state_dict["state"]
    state: dict[str, Any] = {}
    for number, param in enumerate(params):
        own = given.get(number, given.get(names[param][0], {}))
        if id(param) not in handles:
            if own:
                state[names[param][0]] = dict(own)
            continue
        handle, index = handles[id(param)]
        if index is None:
            state |= _unflattened(handle, own, names[param])
        else:
            whole = _gathered(handle, index, own)
            if whole:
                state[names[param][0]] = whole
    groups, number = [], 0
    for group in optim_state_dict["param_groups"]:
        of_group = params[number:number + len(group["params"])]
        number += len(group["params"])
        fqns = [fqn for p in of_group for fqn in (
            names[p] if handles.get(id(p), (None, 0))[1] is None else names[p][:1])]
        groups.append({**copy.deepcopy({k: v for k, v in group.items() if k != "params"}),
                       "params": fqns})
    if sharded:
        state = {fqn: {key: _cut(value, model) for key, value in own.items()}
                 for fqn, own in state.items()}
    if rank0_only and dist.get_rank() != 0:
        return {}
    return {"state": state, "param_groups": groups}


def _unflattened(handle: FlatParamHandle, own: dict[str, Any],
                 names: list[str]) -> dict[str, dict[str, Any]]:
    """The state of a flat parameter as those of the parameters in it."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in own.items():
        if _is_part(value):
            for name, tensor in zip(names, handle.full_tensors(value)):
                found[name][key] = tensor.clone()
        else:
            for name in names:
                found[name][key] = value.clone() if isinstance(value, Tensor) else value
    return {name: values for name, values in found.items() if values}


def _gathered(handle: FlatParamHandle, index: int, own: dict[str, Any]) -> dict[str, Any]:
    """The state of a parameter of which processes have parts."""
    if not handle.uses_sharded_strategy:
        return {key: value.clone() if isinstance(value, Tensor) else value
                for key, value in own.items()}
    begin, end = handle._places()[index]
    mine = dict(own) if end > begin else {}
    every: list[Any] = [None] * handle.world_size
    dist.all_gather_object(every, mine, group=handle.process_group)
    found: dict[str, Any] = {}
    for part in every:
        for key, value in part.items():
            if _is_part(value):
                found.setdefault(key, []).append(value)
            else:
                found[key] = value
    return {key: flambeau.cat(value).view(handle._shapes[index]) if isinstance(value, list)
            else value for key, value in sorted(found.items())}


def _cut(value: Any, model: nn.Module) -> Any:
    """The rows of a tensor that are this process's."""
    if not _is_part(value):
        return value
    from flambeau.distributed.fsdp._shard_utils import _create_chunk_sharded_tensor
    handle: Any = next(s._handle for s in _get_fsdp_states(model) if s._handle is not None)
    group = handle.process_group
    return _create_chunk_sharded_tensor(value, group.rank(), group.size(), 1, group)


# ---- from names ---------------------------------------------------------------------------------

def _optim_state_dict_to_load(model: nn.Module, optim: Optimizer,
                              optim_state_dict: dict[str, Any],
                              by_name: bool) -> dict[str, Any]:
    """A state by names, as the optimizer's own: of this process's parts, by numbers."""
    names, handles = _get_param_to_fqns(model), _handle_of(model)
    given = optim_state_dict["state"]
    state: dict[Any, Any] = {}
    groups, number = [], 0
    for group, loaded in zip(optim.param_groups, optim_state_dict["param_groups"]):
        keys = []
        for param in group["params"]:
            key = names[param][0] if by_name else number
            keys.append(key)
            number += 1
            if id(param) not in handles:
                own = given.get(names[param][0])
            else:
                own = _part(handles[id(param)], names[param], given)
            if own:
                state[key] = own
        groups.append({**{k: v for k, v in group.items() if k != "params"},
                       **{k: v for k, v in loaded.items() if k != "params"}, "params": keys})
    return {"state": state, "param_groups": groups}


def _part(where: tuple[FlatParamHandle, int | None], names: list[str],
          given: dict[str, Any]) -> dict[str, Any]:
    """What this process has of the state of a parameter."""
    handle, index = where
    known = [given.get(name) for name in names]
    if index is not None:
        return _cut_out(handle, index, known[0] or {})
    first = next((own for own in known if own), None)
    found: dict[str, Any] = {}
    for key, value in (first or {}).items():
        if not _is_part(value):
            found[key] = value.clone() if isinstance(value, Tensor) else value
            continue
        parts = [flambeau.zeros(count, dtype=value.dtype) if own is None
                 else _whole_of(own[key], handle.process_group).reshape(-1)
                 for own, count in zip(known, handle._numels)]
        found[key] = handle.part_of(flambeau.cat(parts)).clone()
    return found


def _cut_out(handle: FlatParamHandle, index: int, own: dict[str, Any]) -> dict[str, Any]:
    begin, end = handle._places()[index]
    whole = {key: _whole_of(own[key], handle.process_group) if _is_part(own[key]) else own[key]
             for key in sorted(own)}            # all processes take part, in one order
    if not handle.uses_sharded_strategy:
        return {key: value.clone() if isinstance(value, Tensor) else value
                for key, value in whole.items()}
    if begin == end:
        return {}
    start = max(handle._begin - sum(handle._numels[:index]), 0)
    return {key: value.reshape(-1)[start:start + end - begin].clone() if _is_part(value)
            else value.clone() if isinstance(value, Tensor) else value
            for key, value in whole.items()}
