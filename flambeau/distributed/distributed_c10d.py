"""Process groups and collectives, under the names that PyTorch's module has for them."""
# ruff: noqa: F401   (what is imported here is for others)
from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any

import flambeau
from flambeau._support.own_methods import adopt
from flambeau.distributed._c10d import checks, groups, tags, world
from flambeau.distributed._c10d.backends.gloo import ProcessGroupGloo
from flambeau.distributed._c10d.backends.registry import (
    Backend,
    BackendConfig,
    get_default_backend_for_device,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from flambeau.distributed._c10d.backends.registry import _pairs as _parse_backend_string
from flambeau.distributed._c10d.backends.registry import check_timeout as _check_valid_timeout
from flambeau.distributed._c10d.backends.registry import default_timeout as _get_default_timeout
from flambeau.distributed._c10d.checks import single_tensor as _check_single_tensor
from flambeau.distributed._c10d.checks import tensor_list as _check_tensor_list
from flambeau.distributed._c10d.coalescing import (
    _coalescing_manager,
    _CoalescingManager,
    _time_estimator,
)
from flambeau.distributed._c10d.collectives import (
    _CollOp,
    _IllegalWork,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from flambeau.distributed._c10d.collectives import root_of as _canonicalize_group_rank
from flambeau.distributed._c10d.collectives import warn_not_in_group as _warn_not_in_group
from flambeau.distributed._c10d.debug import (
    DebugLevel,
    get_debug_level,
    record_comm,
    set_debug_level,
    set_debug_level_from_env,
)
from flambeau.distributed._c10d.groups import abort_process_group as _abort_process_group
from flambeau.distributed._c10d.groups import (
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    only_alone,
    shrink_group,
    split_group,
)
from flambeau.distributed._c10d.groups import new_group_with_tag as _new_group_with_tag
from flambeau.distributed._c10d.groups import new_process_group_helper as _new_process_group_helper
from flambeau.distributed._c10d.messages import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from flambeau.distributed._c10d.messages import check_message as _check_op
from flambeau.distributed._c10d.messages import check_messages as _check_p2p_op_list
from flambeau.distributed._c10d.messages import object_to_tensor as _object_to_tensor
from flambeau.distributed._c10d.messages import tensor_to_object as _tensor_to_object
from flambeau.distributed._c10d.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    GroupName,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from flambeau.distributed._c10d.options import (
    DistributedBackendOptions as _DistributedBackendOptions,
)
from flambeau.distributed._c10d.process_group import ProcessGroup
from flambeau.distributed._c10d.reduce_op import RedOpType, ReduceOp, _reduce_op, reduce_op
from flambeau.distributed._c10d.stores import DistStoreError, PrefixStore, Store
from flambeau.distributed._c10d.tags import tag_of as _get_group_tag
from flambeau.distributed._c10d.work import Work
from flambeau.distributed._c10d.world import (
    GroupMember,
    _pg_backend_config,
    _pg_group_ranks,
    _pg_map,
    _pg_names,
    _pg_to_tag,
    _tags_to_pg,
    _World,
    _world,
    group,
)
from flambeau.distributed._c10d.world import hashed_name as _hash_ranks_to_str
from flambeau.distributed._c10d.world import next_name as _process_group_name
from flambeau.distributed._c10d.world import resolve as _resolve
from flambeau.distributed._c10d.world import resolve_name as _resolve_process_group
from flambeau.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from flambeau.distributed.rendezvous import register_rendezvous_handler, rendezvous

__all__ = ["AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "Backend",
           "BackendConfig", "BarrierOptions", "BroadcastOptions", "DebugLevel", "GatherOptions",
           "GroupMember", "GroupName", "P2POp", "PrefixStore", "ProcessGroup", "ProcessGroupGloo",
           "ReduceOp", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "Store", "Work",
           "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
           "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
           "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
           "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather",
           "gather_object", "get_backend", "get_backend_config", "get_debug_level",
           "get_default_backend_for_device", "get_global_rank", "get_group_rank",
           "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank",
           "get_world_size", "group", "init_process_group", "irecv", "is_backend_available",
           "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
           "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
           "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
           "record_comm", "recv", "recv_object_list", "reduce", "reduce_op", "reduce_scatter",
           "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list",
           "send", "send_object_list", "shrink_group", "split_group", "supports_complex"]

PG_WRAPPER_STORE_PREFIX = "pg_wrapper"
STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"
SHRINK_DEFAULT, SHRINK_ABORT = 0, 1
_backend = _default_pg_init_method = None
_group_count = 0


# ---- what other modules ask about groups --------------------------------------------------------

def _get_default_group() -> Any:
    return _resolve(None)


def _get_default_store() -> Store:
    return _world.pg_map[_resolve(None)][1]


def _update_default_pg(pg: Any) -> None:
    _world.default_pg = pg


def _group_or_default_group(group: Any = None) -> Any:
    return _resolve(group)


def _rank_not_in_group(group: Any) -> bool:
    return group is GroupMember.NON_GROUP_MEMBER


def _get_global_rank(group: Any, rank: int) -> int:
    warnings.warn("torch.distributed.distributed_c10d._get_global_rank is deprecated please use "
                  "torch.distributed.distributed_c10d.get_global_rank instead", FutureWarning,
                  stacklevel=3)
    return get_global_rank(group, rank)


def _get_group_size(group: Any) -> int:
    return _resolve(group).size()


def _get_group_size_by_name(group_name: Any) -> int:
    return _resolve_process_group(group_name).size()


def _get_process_group_name(pg: Any) -> str:
    return _world.pg_names.get(pg, "None")


def _get_process_group_store(pg: Any) -> Store:
    return _world.pg_map[pg][1]


def _get_process_group_uid(pg: Any) -> int:
    """A number that a device's backend gives its groups; here there is none."""
    return -1


def _get_pg_config(group: Any = None) -> dict[str, Any]:
    found = _resolve(group)
    return {"pg_name": _get_process_group_name(found), "pg_desc": found.group_desc,
            "backend_config": get_backend_config(found), "pg_size": _get_group_size(found),
            "ranks": get_process_group_ranks(found)}


def _get_all_pg_configs() -> list[dict[str, Any]]:
    return [_get_pg_config(found) for found in _world.pg_map]


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> Any:
    return tags.find_by_ranks_and_tag(tag, ranks)


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> Any:
    return tags.find_or_create_by_ranks_and_tag(tag, ranks, stride)


def _resolve_group_name_by_ranks_and_tag(ranks: list[int], tag: str) -> str:
    found = _find_pg_by_ranks_and_tag(tag, ranks)
    if found is None:
        raise ValueError("")
    return found.group_name


def _process_group_color(ranks: list[int]) -> int:
    """A number that all members of a group agree on."""
    return hash(tuple(ranks)) % (2 ** 31 - 1) if ranks else -1


def _register_process_group(name: str, pg: Any) -> None:
    world.by_name[name] = pg


def _unregister_process_group(name: str) -> None:
    world.by_name.pop(name, None)


def _unregister_all_process_groups() -> None:
    world.by_name.clear()


def _register_pg_in_world(pg: Any, backend_name: str, store: Store, group_name: str,
                          backend_config: str, rank_mapping: dict[int, int] | None = None,
                          pg_tag: str | None = None, user_tag: str | None = None,
                          add_to_default_tag: bool = False) -> None:
    tag = pg_tag or (f"user:{user_tag}" if user_tag else f"ptd:{group_name}")
    _world.add(pg, backend_name, store, group_name, backend_config, rank_mapping, tag)
    if add_to_default_tag:
        _world.tags_to_pg.setdefault("", []).append(pg)


def _cleanup_process_group_global_state(pg: Any) -> None:
    _world.remove(pg)


def _destroy_all_other_groups(exclude_group: Any = None) -> None:
    """End all groups but one and the default one."""
    for found in reversed(list(_world.pg_map)):
        if found is not exclude_group and found is not _world.default_pg:
            destroy_process_group(found)


def _extract_group_metadata(group: Any) -> dict[str, Any]:
    backend, store = _world.pg_map[group]
    name = _get_process_group_name(group)
    return {"backend_name": backend, "store": store, "backend_config": get_backend_config(group),
            "original_group_name": name,
            "new_group_name": _hash_ranks_to_str(get_process_group_ranks(group)),
            "bound_device_id": group.bound_device_id}


# ---- devices ------------------------------------------------------------------------------------

def _device_capability(group: Any = None) -> list[str]:
    return [device.type for device in _resolve(group)._device_types]


def _get_object_coll_device(group: Any = None) -> str:
    """Where objects travel as tensors."""
    return "cpu"


def _get_pg_default_device(group: Any = None) -> Any:
    warnings.warn("`_get_pg_default_device` will be deprecated, it only stays for "
                  "backward-compatibility reason. If you need to find a device for object "
                  "collectives, please use `_get_object_coll_device`. If you need to query the "
                  "device types supported by group, please use `_device_capability(group)`. ",
                  stacklevel=2)
    return flambeau.device("cpu")


def _get_backend_from_str(backend: str | None = None) -> str:
    return Backend(backend) if backend else get_backend()


def _check_single_backend_availability(backend_name: str) -> bool:
    return is_backend_available(backend_name)


def _use_torchcomms_enabled() -> bool:
    return False


def _is_safe_to_split() -> bool:
    """Groups here split without a device."""
    return True


def _get_split_source(pg: Any) -> Any:
    """The backend that another group is split from."""
    backends = list(getattr(pg, "_types", {}).values())
    return next((b for b in backends if b.supports_splitting), None)


# ---- timeouts, barriers -------------------------------------------------------------------------

def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    _check_valid_timeout(timeout)
    _resolve(group).set_timeout(timeout)


def _add_ephemeral_timeout_for_all_pgs(timeout: timedelta) -> None:
    """Only backends of devices extend a timeout for one collective."""


def _is_barrier_after_init() -> int:
    return int(os.getenv("TORCH_DIST_INIT_BARRIER", "0"))


def _store_based_barrier(rank: int, store: Store, group_name: str, rendezvous_count: int,
                         timeout: timedelta,
                         logging_interval: timedelta = timedelta(seconds=10)) -> None:
    """Wait, through a store, until that many processes have come here."""
    key = f"{STORE_BASED_BARRIER_PREFIX}:{group_name}"
    count = store.add(key, 1)
    if count == rendezvous_count:
        store.set(f"{key}:last_worker", "1")
    try:
        store.wait([f"{key}:last_worker"], timeout)
    except RuntimeError as error:
        raise DistStoreError(
            f"Timed out after {timeout} waiting for clients. {store.add(key, 0)}/"
            f"{rendezvous_count} clients joined.") from error


# ---- checks -------------------------------------------------------------------------------------

def _check_not_self_rank(group: Any, rank: int, rank_type: str) -> None:
    if group.rank() == rank:
        raise ValueError(f"Invalid {rank_type} rank: {rank_type} rank should not be the same as "
                         "the rank of the current process.")


def _as_iterable(obj: Any) -> Any:
    return obj if isinstance(obj, list) else (obj,)


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    flat = [t for given in tensors for t in _as_iterable(given)]
    if flat:
        checks.same_type(*flat)


def _validate_output_list_for_rank(my_rank: int, dst: int, gather_list: Any) -> None:
    if dst == my_rank and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if dst != my_rank and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def _is_fp8(dtype: Any) -> bool:
    return dtype in (flambeau.float8_e4m3fn, flambeau.float8_e5m2, flambeau.float8_e4m3fnuz,
                     flambeau.float8_e5m2fnuz)


# ---- older names --------------------------------------------------------------------------------

def _all_gather_base(output_tensor: Any, input_tensor: Any, group: Any = None,
                     async_op: bool = False) -> Any:
    """`all_gather_into_tensor`, under the name that it had before."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None,
                         async_op: bool = False) -> Any:
    """`reduce_scatter_tensor`, under the name that it had before."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def _export_c_types() -> None:
    """Nothing is left to export."""


def _create_process_group_wrapper(wrapped_pg: Any, store_prefix: str, store: Store, rank: int,
                                  world_size: int,
                                  timeout: timedelta = default_pg_timeout) -> Any:
    """A backend that compares the calls of all processes before it hands them on."""
    from flambeau.distributed._c10d.backends.wrapper import ProcessGroupWrapper
    helper = ProcessGroupGloo(PrefixStore(store_prefix, store), rank, world_size, timeout=timeout)
    return ProcessGroupWrapper(wrapped_pg, helper)


adopt(globals(), "distributed._c10d")
