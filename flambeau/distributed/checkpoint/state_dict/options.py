"""What a call about states is asked for, and what it finds of the model: names, FSDP modules."""
from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._state_dict_utils import _gather_state_dict, _offload_state_dict_to_cpu
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX
from flambeau.nn.modules.module import Module
from flambeau.optim import Optimizer

FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = Any         # a `PrimitiveType`, or lists, tuples and dicts of them
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, DictValueType | ListDictValueType]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
_FLAT_PARAM = "_flat_param"


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


def _placed_like(value: Any, parameter: Tensor) -> Any:
    """A whole tensor in the pieces of its parameter."""
    from flambeau.distributed.tensor import DTensor, distribute_tensor
    if isinstance(parameter, DTensor) and isinstance(value, Tensor) \
            and not isinstance(value, DTensor) and value.shape == parameter.shape:
        return distribute_tensor(value, parameter.device_mesh, parameter.placements,
                                 src_data_rank=None)
    return value
