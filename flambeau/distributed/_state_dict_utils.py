"""States with tensors in them: gathered, copied to main memory, sent to all, spread."""
from __future__ import annotations

import copy
import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard._utils import narrow_tensor_by_index

__all__: list[str] = []

PATH_ITEM = str | int
OBJ_PATH = tuple[PATH_ITEM, ...]
FLATTEN_MAPPING = dict[str, OBJ_PATH]
_LEAVES = (int, float, str, bytes, io.BytesIO, type(None))


class CompanionMismatch(Exception):
    """Two states are not of one form."""


def _identity_func(obj: Tensor, pg: Any, device: Any, companion_obj: Any) -> Tensor:
    return obj


def _all_gather_sharded_tensor(sharded_tensor: Any, pg: Any = None, device: Any = None) -> Tensor:
    """The whole of a sharded tensor, at all processes."""
    group = sharded_tensor._process_group if pg is None else pg
    mine = [(shard.metadata, shard.tensor.detach()) for shard in sharded_tensor.local_shards()]
    every: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(every, mine, group=group)
    whole = flambeau.empty(sharded_tensor.size(), dtype=sharded_tensor.dtype)
    for about, piece in (pair for pairs in every for pair in pairs):
        narrow_tensor_by_index(whole, about.shard_offsets, about.shard_sizes).copy_(piece)
    return whole


def _iterate_state_dict(iter_object: Any, sharded_tensor_func: Callable[..., Any],
                        dtensor_func: Callable[..., Any], tensor_func: Callable[..., Any], *,
                        pg: Any = None, device: Any = None, cpu_offload: bool = False,
                        companion_obj: Any = None, ranks_only: tuple[int, ...] = (),
                        type_check: bool = True, non_blocking: bool = True) -> Any:
    """A state of what functions make of its tensors, by their kinds.

    With `companion_obj`, a state of the same form, the tensors are copied into its. Processes
    that are not among `ranks_only`, if any are named, get an empty state.
    """
    from flambeau.distributed._shard.sharded_tensor import ShardedTensor
    from flambeau.distributed.tensor import DTensor
    options: dict[str, Any] = {
        "pg": pg, "device": device, "cpu_offload": cpu_offload, "ranks_only": ranks_only,
        "type_check": type_check, "non_blocking": non_blocking}
    functions = sharded_tensor_func, dtensor_func, tensor_func
    found: Any
    if isinstance(iter_object, ShardedTensor):
        found = sharded_tensor_func(iter_object, pg, device, companion_obj)
    elif isinstance(iter_object, DTensor):
        found = dtensor_func(iter_object, pg, device, companion_obj)
    elif isinstance(iter_object, Tensor):
        found = tensor_func(iter_object, pg, device, companion_obj)
    elif isinstance(iter_object, _LEAVES):
        found = iter_object
    elif isinstance(iter_object, (dict, list, tuple)):
        def convert(value: Any, companion: Any = None) -> Any:
            return _iterate_state_dict(value, *functions, companion_obj=companion, **options)
        others = () if companion_obj is None else (companion_obj,)
        found = _of_entries(convert, iter_object, *others)
    elif not type_check:
        found = copy.deepcopy(iter_object)
    else:
        raise ValueError(f"Unexpected value type {type(iter_object)}")
    return _kept(found, companion_obj, cpu_offload, ranks_only, non_blocking)


def _of_entries(function: Callable[..., Any], value: Any, *companions: Any) -> Any:
    """A dict, list or tuple of what a function makes of each entry, and of the one in its place in
    a companion of the same form."""
    if isinstance(value, dict):
        for other in companions:
            if not isinstance(other, dict) or set(other) != set(value):
                raise CompanionMismatch("" if isinstance(other, dict)
                                        else f"companion_obj is a {type(other)}")
        return {key: function(entry, *(other[key] for other in companions))
                for key, entry in value.items()}
    for other in companions:
        if not isinstance(other, (list, tuple)) or len(other) != len(value):
            raise CompanionMismatch
    found = [function(*entries) for entries in zip(value, *companions)]
    return tuple(found) if isinstance(value, tuple) else found


def _kept(found: Any, companion_obj: Any, cpu_offload: bool, ranks_only: tuple[int, ...],
          non_blocking: bool) -> Any:
    """What becomes of a part of the state in this process."""
    if ranks_only and dist.get_rank() not in ranks_only:
        return {} if isinstance(found, dict) else None
    if not isinstance(found, Tensor):
        return found
    if cpu_offload and companion_obj is None:
        found = found.to(flambeau.device("cpu"))
    if companion_obj is not None:
        _values(companion_obj).copy_(_values(found), non_blocking=non_blocking)
        return companion_obj
    return found


def _values(tensor: Any) -> Tensor:
    """The memory of a tensor: of a `DTensor`, what this process has."""
    local = getattr(tensor, "_local_tensor", None)
    return (tensor if local is None else local).detach()


def _gather_state_dict(state_dict: dict[str, Any], *, pg: Any = None, device: Any = None,
                       cpu_offload: bool = False, ranks_only: tuple[int, ...] = (),
                       type_check: bool = True) -> dict[str, Any]:
    """The state with whole tensors in the place of those in pieces."""
    def sharded(value: Any, pg: Any, device: Any, companion_obj: Any) -> Any:
        return _all_gather_sharded_tensor(value, pg, device)

    def distributed(value: Any, pg: Any, device: Any, companion_obj: Any) -> Any:
        return value.detach().full_tensor()
    return _iterate_state_dict(state_dict, sharded, distributed, _identity_func, pg=pg,
                               device=device, cpu_offload=cpu_offload, ranks_only=ranks_only,
                               type_check=type_check)


def _offload_state_dict_to_cpu(state_dict: dict[str, Any], *, ranks_only: tuple[int, ...] = (),
                               type_check: bool = True) -> dict[str, Any]:
    """The state in main memory."""
    return _iterate_state_dict(state_dict, _identity_func, _identity_func, _identity_func,
                               cpu_offload=True, ranks_only=ranks_only, type_check=type_check)


def _copied_shards(value: Any, pg: Any, device: Any, companion_obj: Any) -> Any:
    if companion_obj is None:
        return value.clone() if hasattr(value, "clone") else value
    for source, to in zip(value.local_shards(), companion_obj.local_shards()):
        to.tensor.detach().copy_(source.tensor)
    return companion_obj


def _copy_state_dict(state_dict: dict[str, Any], copy_state_dict: dict[str, Any],
                     non_blocking: bool = False, type_check: bool = True) -> dict[str, Any]:
    """Copy tensors into those of a state of the same form, `copy_state_dict`; gives it, with
    copies of all other values."""
    def fill(value: Any, to: Any) -> Any:
        from flambeau.distributed._shard.sharded_tensor import ShardedTensor
        if isinstance(value, ShardedTensor):
            return _copied_shards(value, None, None, to)
        if isinstance(value, Tensor):
            _values(to).copy_(_values(value), non_blocking=non_blocking)
            return to
        if isinstance(value, (dict, list, tuple)):
            return _of_entries(fill, value, to)
        if type_check and not isinstance(value, _LEAVES):
            raise ValueError(f"Unexpected value type {type(value)}")
        return copy.deepcopy(value)
    return fill(state_dict, copy_state_dict)


def _create_cpu_state_dict(state_dict: dict[str, Any], pin_memory: bool = False,
                           share_memory: bool = False) -> dict[str, Any]:
    """A state of the same form with room for its tensors, in main memory."""
    def room(value: Tensor, pg: Any, device: Any, companion_obj: Any) -> Tensor:
        made = flambeau.empty_like(value, device="cpu", requires_grad=False)
        return made.share_memory_() if share_memory else made

    def sharded(value: Any, pg: Any, device: Any, companion_obj: Any) -> Any:
        return value.detach().clone()

    def distributed(value: Any, pg: Any, device: Any, companion_obj: Any) -> Any:
        made = copy.copy(value.detach())
        return made if made is not value else value.clone()
    return _iterate_state_dict(state_dict, sharded, distributed, room, type_check=False)


def _check_state_dict_similarity(state_dict: dict[str, Any],
                                 compared_state_dict: dict[str, Any]) -> bool:
    """Have two states the same keys, and tensors of the same types and sizes?"""
    def check(value: Any, other: Any) -> None:
        if isinstance(value, Tensor):
            if not isinstance(other, Tensor) or other.dtype != value.dtype \
                    or other.size() != value.size():
                raise CompanionMismatch
        elif isinstance(value, (dict, list, tuple)):
            _of_entries(check, value, other)
    try:
        check(state_dict, compared_state_dict)
    except CompanionMismatch:
        return False
    return True


class _TensorInfo(NamedTuple):
    """What a process learns of a tensor before it is sent."""
    size: flambeau.Size
    dtype: flambeau.dtype


def _broadcast_tensors(full_state_dict: dict[str, Any], local_state_dict: dict[str, Any],
                       keys: list[str], device: flambeau.device, pg: Any = None) -> None:
    """Send whole tensors of the first process to all; what is in pieces takes its piece."""
    for key in keys:
        full = full_state_dict[key] if dist.get_rank() == 0 else None
        if full is None or isinstance(full, _TensorInfo):
            size, dtype = full_state_dict[key]
            full = flambeau.empty(size, dtype=dtype)
        full = full.detach().contiguous()
        dist.broadcast(full, src=0, group=pg)
        _take_piece(local_state_dict, key, full)


def _take_piece(local_state_dict: dict[str, Any], key: str, full: Tensor) -> None:
    from flambeau.distributed.tensor import DTensor
    local = local_state_dict.get(key)
    if isinstance(local, DTensor):
        local_state_dict[key] = local, full
        _distribute_tensors(local_state_dict, [key], full.device)
    elif isinstance(local, Tensor) and not local.is_meta:
        local.detach().copy_(full)
    else:
        local_state_dict[key] = full


def _distribute_tensors(local_state_dict: dict[str, Any], keys: list[str],
                        device: flambeau.device, pg: Any = None) -> None:
    """Let pairs of a tensor in pieces and the whole become the pieces of the whole."""
    from flambeau.distributed.tensor import DTensor, distribute_tensor
    for key in keys:
        found = local_state_dict.get(key)
        if found is None or isinstance(found, Tensor):
            continue
        local, full = found
        if isinstance(local, DTensor):
            local_state_dict[key] = distribute_tensor(full, local.device_mesh, local.placements,
                                                      src_data_rank=None)
        else:
            local_state_dict[key] = full


def _broadcast_state_dict(full_state_dict: dict[str, Any], local_state_dict: dict[str, Any],
                          device: flambeau.device, pg: Any = None, strict: bool = False,
                          cpu_offload: bool = False) -> None:
    """Let `local_state_dict` be the whole state that the first process has, in the pieces that it
    is in."""
    mine: dict[str, Any] = {}
    if dist.get_rank() == 0:
        for key, value in full_state_dict.items():
            mine[key] = _TensorInfo(value.size(), value.dtype) \
                if isinstance(value, Tensor) and value.dim() else value
    found = [mine]
    dist.broadcast_object_list(found, src=0, group=pg)
    about, keys = found[0], []
    for key, value in about.items():
        if not isinstance(value, _TensorInfo):
            if key in local_state_dict or not strict:
                local_state_dict[key] = value
            continue
        source = full_state_dict if dist.get_rank() == 0 else about
        if strict and key not in local_state_dict:
            local_state_dict.pop(key, None)
        keys.append(key)
        _broadcast_tensors({key: source[key]}, local_state_dict, [key], device, pg)
    if strict:
        for key in set(local_state_dict) - set(about):
            local_state_dict.pop(key)


def _distribute_state_dict(full_state_dict: dict[str, Any], local_state_dict: dict[str, Any],
                           device: flambeau.device, pg: Any = None) -> None:
    """Let `local_state_dict` be the whole state, which all processes have, in the pieces that it
    is in."""
    for key, value in full_state_dict.items():
        if key not in local_state_dict:
            local_state_dict[key] = value
        elif isinstance(value, Tensor) and value.dim():
            _take_piece(local_state_dict, key, value.detach())
        else:
            local_state_dict[key] = value


# ---- flat states --------------------------------------------------------------------------------

def _traverse_state_dict(state_dict: dict[str, Any],
                         visitor: Callable[[OBJ_PATH, Any], None]) -> None:
    """Call `visitor(path, value)` for each value in nested dicts, lists and tuples."""
    def walk(path: OBJ_PATH, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, entry in value.items():
                walk((*path, str(key)), entry)
        elif isinstance(value, (list, tuple)):
            for i, entry in enumerate(value):
                walk((*path, i), entry)
        else:
            visitor(path, value)
    for key, value in state_dict.items():
        walk((str(key),), value)


def _flatten_state_dict(state_dict: dict[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """A flat state with dotted names, and the place of each value in the nested one."""
    from flambeau.distributed.checkpoint._nested_dict import _flattened
    return _flattened(state_dict, _traverse_state_dict)


def _set_element(root_dict: dict[str, Any], path: OBJ_PATH, value: Any) -> None:
    """Put a value to its place, with the dicts and lists on the way to it."""
    from flambeau.distributed.checkpoint._traverse import set_element
    set_element(root_dict, path, value)


def _unflatten_state_dict(state_dict: dict[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """The nested state of a flat one."""
    from flambeau.distributed.checkpoint._nested_dict import unflatten_state_dict
    return unflatten_state_dict(state_dict, mapping)
