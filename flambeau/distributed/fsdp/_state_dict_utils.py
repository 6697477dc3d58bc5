"""State dicts of wrapped modules: whole tensors, sharded ones, or the flat part."""
from __future__ import annotations

import contextlib
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._state_dict_utils import _all_gather_sharded_tensor
from flambeau.distributed.fsdp._common_utils import FSDP_PREFIX
from flambeau.distributed.fsdp._shard_utils import _create_chunk_sharded_tensor
from flambeau.distributed.fsdp._unshard_param_utils import FLAT_PARAM, _unshard_fsdp_state_params
from flambeau.distributed.fsdp.api import StateDictType
from flambeau.distributed.utils import _replace_by_prefix


def _pre_state_dict_hook(module: Any, *args: Any, **kwargs: Any) -> None:
    """Have the whole parameters, unless the flat part is wanted."""
    if _is_local(module):
        _register_flat(module)
        return
    module._whole = contextlib.ExitStack()
    module._whole.enter_context(_unshard_fsdp_state_params(
        module, module, writeback=False, rank0_only=False, offload_to_cpu=False,
        with_grads=False))


def _is_local(module: Any) -> bool:
    """Is the flat part wanted? Without sharding it is the whole."""
    handle = module._handle
    return module._state_dict_type is StateDictType.LOCAL_STATE_DICT and (
        handle is None or handle.uses_sharded_strategy)


def _register_flat(module: Any) -> None:
    if module._handle is not None:
        module._fsdp_wrapped_module._parameters[FLAT_PARAM] = module._handle.flat_param


def _post_state_dict_hook(module: Any, state_dict: dict[str, Any], prefix: str,
                          *args: Any) -> dict[str, Any]:
    """Let what is there be what is wanted, under the names that users know."""
    kind, config = module._state_dict_type, module._state_dict_config
    if _is_local(module):
        _local(module, state_dict, prefix)
    else:
        names = _names(module, prefix)
        rank = module.rank
        for name in names:
            if name not in state_dict:
                continue
            value = state_dict[name].detach().clone()
            if kind is StateDictType.SHARDED_STATE_DICT and module._handle.uses_sharded_strategy:
                value = _sharded(module, value, config)
            state_dict[name] = value
        module._whole.close()
        module._whole = None
        if kind is StateDictType.FULL_STATE_DICT and config.rank0_only and rank != 0:
            for name in [key for key in state_dict if key.startswith(prefix)]:
                del state_dict[name]
    _replace_by_prefix(state_dict, prefix + FSDP_PREFIX, prefix)
    return state_dict


def _names(module: Any, prefix: str) -> list[str]:
    """The names under which a module's own parameters are in the state."""
    if module._handle is None:
        return []
    flat = module._handle.flat_param
    return [f"{prefix}{FSDP_PREFIX}{info.module_name + '.' if info.module_name else ''}"
            f"{info.param_name}".replace("_checkpoint_wrapped_module.", "")
            for info in (*flat._param_infos, *flat._shared_param_infos)]


def _sharded(module: Any, value: Tensor, config: Any) -> Any:
    """A tensor of which each process has some rows."""
    if getattr(config, "_use_dtensor", False):
        from flambeau.distributed.tensor import Shard, distribute_tensor
        return distribute_tensor(value, module._device_mesh, [Shard(0)], src_data_rank=None)
    group = module._handle.process_group
    return _create_chunk_sharded_tensor(value, group.rank(), group.size(), 1, group)


def _local(module: Any, state_dict: dict[str, Any], prefix: str) -> None:
    """The flat part, as a piece of a sharded tensor."""
    handle = module._handle
    if handle is None:
        return
    from flambeau.distributed._shard.sharded_tensor import Shard, init_from_local_shards
    key = f"{prefix}{FSDP_PREFIX}{FLAT_PARAM}"
    module._fsdp_wrapped_module._parameters.pop(FLAT_PARAM, None)
    if not module._use_orig_params:
        module._fsdp_wrapped_module._parameters[FLAT_PARAM] = handle.flat_param
    for name in _names(module, prefix):
        state_dict.pop(name, None)
    own = handle.flat_param.detach()
    keep = max(min(handle._full_size - handle._begin, handle._part), 0)
    shards = [Shard.from_tensor_and_offsets(own[:keep], [handle._begin], module.rank)] \
        if keep else []
    state_dict[key] = init_from_local_shards(shards, handle._full_size,
                                             process_group=handle.process_group)


# ---- loading ------------------------------------------------------------------------------------

def _pre_load_state_dict_hook(module: Any, state_dict: dict[str, Any], prefix: str,
                              *args: Any) -> None:
    """Make room for whole parameters; tensors in pieces are put together."""
    _replace_by_prefix(state_dict, prefix, prefix + FSDP_PREFIX)
    handle = module._handle
    if _is_local(module):
        if handle is not None:
            _load_local(module, state_dict, prefix)
        return
    if handle is not None and module._state_dict_type is StateDictType.SHARDED_STATE_DICT:
        for name in _names(module, prefix):
            if name in state_dict:
                state_dict[name] = _whole_of(state_dict[name], handle.process_group)
    module._whole = contextlib.ExitStack()
    module._whole.enter_context(_unshard_fsdp_state_params(
        module, module, writeback=True, rank0_only=False, offload_to_cpu=False,
        with_grads=False))


def _whole_of(value: Any, group: Any) -> Tensor:
    """The whole of a tensor in pieces."""
    from flambeau.distributed._shard.sharded_tensor import ShardedTensor
    from flambeau.distributed.tensor import DTensor
    if isinstance(value, ShardedTensor):
        return _all_gather_sharded_tensor(value, group)
    return value.full_tensor() if isinstance(value, DTensor) else value


def _load_local(module: Any, state_dict: dict[str, Any], prefix: str) -> None:
    from flambeau.distributed._shard.sharded_tensor import ShardedTensor
    handle, key = module._handle, f"{prefix}{FSDP_PREFIX}{FLAT_PARAM}"
    value = state_dict[key]
    if isinstance(value, ShardedTensor):
        pieces = [shard.tensor for shard in value.local_shards()]
        own = flambeau.cat(pieces) if pieces else handle.flat_param.new_empty(0)
        value = flambeau.nn.functional.pad(own, [0, handle._part - own.numel()])
    state_dict[key] = value
    if module._use_orig_params:
        state_dict.pop(key)
        handle.flat_param.data.copy_(value)
        for name in _names(module, prefix):
            state_dict[name] = None
        for name, info in zip(_names(module, prefix), handle.flat_param._param_infos):
            state_dict[name] = getattr(info.module, info.param_name).detach()


def _post_load_state_dict_hook(module: Any, incompatible_keys: Any, *args: Any) -> None:
    """Take what has been loaded into the part that this process has."""
    if module._whole is not None:
        module._whole.close()
        module._whole = None


def _register_all_state_dict_hooks(state: Any) -> None:
    """Let `state_dict` and `load_state_dict` of a wrapped module be those above."""
    state.register_state_dict_pre_hook(_pre_state_dict_hook)
    state._register_state_dict_hook(_post_state_dict_hook)
    state._register_load_state_dict_pre_hook(_pre_load_state_dict_hook, with_module=True)
    state.register_load_state_dict_post_hook(_post_load_state_dict_hook)
