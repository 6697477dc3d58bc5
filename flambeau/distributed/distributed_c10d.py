"""Process groups and collectives, for one process.

A group of one needs no transport: a collective checks its arguments, and what it gathers, reduces
or scatters is what this process has given. Programs written for several processes so run in one.
Groups of more raise `NotImplementedError`: flambeau does not move tensors between processes.
"""
from __future__ import annotations

import copy
import enum
import os
import pickle
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed.constants import default_pg_timeout
from flambeau.distributed.rendezvous import rendezvous
from flambeau.distributed.stores import PrefixStore, Store
from flambeau.futures import Future


class RedOpType(enum.IntEnum):
    """What a reduction does."""
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


class ReduceOp:
    """What `all_reduce` and its kind do with the values of all processes: `ReduceOp.SUM` …"""

    RedOpType = RedOpType

    def __init__(self, op: RedOpType):
        if not isinstance(op, RedOpType):
            raise TypeError("ReduceOp(): incompatible constructor arguments: expected a "
                            f"ReduceOp.RedOpType, got {op!r}")
        self.op = op

    def __eq__(self, other: Any) -> bool:
        return self.op == getattr(other, "op", other)

    def __hash__(self) -> int:
        return int(self.op)


for _op in RedOpType:
    setattr(ReduceOp, _op.name, _op)
reduce_op = ReduceOp


class Backend(str):
    """The name of a backend, in lower case. gloo is what flambeau has, for groups of one.

    >>> Backend("GLOO")
    'gloo'
    """
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, "fake"]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> str:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper(), None) or name.lower()


class BackendConfig:
    """Which backend serves which type of device."""

    def __init__(self, backend: str):
        self.device_backend_map = {"cpu": backend}

    def __repr__(self) -> str:
        return ",".join(f"{device}:{b}" for device, b in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Types of devices to backends."""
        return self.device_backend_map


class Work:
    """A collective that was started with `async_op=True`; it is done already."""

    def __init__(self, tensors: Any):
        self._tensors = tensors

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None: it has not failed."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True, at once."""
        return True

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def result(self) -> Any:
        """The tensors that it wrote."""
        return self._tensors

    def get_future(self) -> Future:
        """A future of the tensors that it wrote."""
        future: Future = Future()
        future.set_result(self._tensors)
        return future


class ProcessGroup:
    """Processes that take part in collectives together: here, this one."""

    def __init__(self, backend: str, store: Store | None, name: str, timeout: timedelta):
        self.backend, self.store, self.group_name, self.timeout = backend, store, name, timeout
        self.group_desc = "default_pg" if name == "0" else "undefined"

    def rank(self) -> int:
        """0: the only process."""
        return 0

    def size(self) -> int:
        """1: the only process."""
        return 1

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Work:
        """All processes' tensors summed up."""
        return Work(tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Work:
        """The tensors of one process for all."""
        return Work(tensors)

    def barrier(self, opts: Any = None) -> Work:
        """Wait for all processes."""
        return Work([])


ProcessGroupGloo = ProcessGroup


class GroupMember:
    """The default group, and what stands for a group that this process is no member of."""
    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


group = GroupMember
_groups: dict[str, ProcessGroup] = {}


def _one_process(world_size: int, what: str) -> None:
    if world_size > 1:
        raise NotImplementedError(
            f"{what} with world_size={world_size}: flambeau has no transport that moves tensors "
            "between processes; it runs distributed programs with world_size=1")


# ---- groups -------------------------------------------------------------------------------------

def is_available() -> bool:
    """True: the package is there."""
    return True


def is_initialized() -> bool:
    """Has `init_process_group` been called?"""
    return GroupMember.WORLD is not None


def is_gloo_available() -> bool:
    """True, for groups of one."""
    return True


def is_nccl_available() -> bool:
    """False: there is no CUDA."""
    return False


def is_mpi_available() -> bool:
    """False: flambeau is not built with MPI."""
    return False


def is_ucc_available() -> bool:
    """False: flambeau is not built with UCC."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XPU."""
    return False


def is_backend_available(backend: str) -> bool:
    """Is this backend there? gloo is."""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Was this process started by torchelastic?"""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def _check_backend(backend: str | None) -> str:
    if backend is None:
        return Backend.GLOO
    if ":" in backend:
        backend = dict(part.split(":") for part in backend.split(","))["cpu"]
    backend = Backend(backend)
    assert backend in Backend.backend_list, f"Unknown backend type {backend}"
    if backend != Backend.GLOO:
        raise RuntimeError(f"Distributed package doesn't have {backend.upper()} built in")
    return backend


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Store | None = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:
    """Make the default group, of this process alone: `world_size` has to be 1.

    >>> from flambeau.distributed.stores import HashStore
    >>> init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> get_rank(), get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    backend = _check_backend(backend)
    timeout = default_pg_timeout if timeout is None else timeout
    _one_process(world_size, "init_process_group")
    if store is None:
        init_method = init_method or "env://"
        if init_method.startswith("env://") and world_size == -1:
            _one_process(int(os.environ.get("WORLD_SIZE") or 1), "init_process_group")
        store, rank, world_size = next(rendezvous(init_method, rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
        _one_process(world_size, "init_process_group")
    if rank != 0:
        raise ValueError(f"init_process_group: rank {rank} in a group of one")
    GroupMember.WORLD = ProcessGroup(backend, PrefixStore("default_pg", store), "0", timeout)
    _groups["0"] = GroupMember.WORLD


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group; without argument, all of them."""
    if group is None or group is GroupMember.WORLD:
        assert GroupMember.WORLD is not None, "Process group cannot be None"
        GroupMember.WORLD = None
        _groups.clear()
    else:
        if _groups.pop(group.group_name, None) is None:
            raise ValueError("Invalid process group specified")


def _resolve(group: Any) -> ProcessGroup | None:
    """The group of a call; None if this process is not in it."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    if group is not None:
        return group
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to "
                         "call init_process_group.")
    return GroupMember.WORLD


def _get_default_group() -> ProcessGroup:
    return _resolve(None)


def get_rank(group: Any = None) -> int:
    """The number of this process in a group: 0; -1 if it is not in it."""
    return -1 if _resolve(group) is None else 0


def get_world_size(group: Any = None) -> int:
    """The number of processes in a group: 1; -1 if this one is not in it."""
    return -1 if _resolve(group) is None else 1


def get_backend(group: Any = None) -> str:
    """The backend of a group."""
    return _resolve(group).backend


def get_backend_config(group: Any = None) -> str:
    """Which backend serves which type of device."""
    return repr(BackendConfig(get_backend(group)))


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a type of device unless told otherwise."""
    kind = device.type if isinstance(device, flambeau.device) else flambeau.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group's members in the default group."""
    _resolve(group)
    return [0]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a member of the default group."""
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return 0


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group of a member of a group."""
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the environment."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead.")


def get_pg_count() -> int:
    """The number of groups."""
    return len(_groups)


def new_group(ranks: Any = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True) -> Any:
    """A group of some members of the default group."""
    world = _resolve(None)
    ranks = [0] if ranks is None else list(ranks)
    if len(ranks) > 1:
        raise ValueError("the new group's world size should be less or equal to the world size "
                         "set by init_process_group")
    if ranks and not 0 <= ranks[0] < 1:
        raise ValueError("The new group's rank should be within the world_size set by "
                         "init_process_group")
    if not ranks:
        return GroupMember.NON_GROUP_MEMBER
    name = str(len(_groups))
    made = ProcessGroup(world.backend if backend is None else _check_backend(backend), world.store,
                        name, world.timeout if timeout is None else timeout)
    made.group_desc = group_desc or "undefined"
    _groups[name] = made
    return made


def new_subgroups(group_size: int | None = None, group: Any = None,
                  timeout: timedelta | None = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of equal size, and the one that this process is in."""
    _resolve(group)
    if group_size is not None and group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size is not None and group_size > 1:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    made = new_group([0], timeout, backend, pg_options, group_desc=group_desc)
    return made, [made]


def new_subgroups_by_enumeration(ranks_per_subgroup_list: list[list[int]],
                                 timeout: timedelta | None = None, backend: str | None = None,
                                 pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of these members, and the one that this process is in."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
            for ranks in ranks_per_subgroup_list]
    mine = next((g for g in made if g is not GroupMember.NON_GROUP_MEMBER), None)
    return mine, made


def split_group(parent_pg: Any = None, split_ranks: list | None = None,
                timeout: timedelta | None = None, pg_options: Any = None,
                group_desc: str | None = None, backend: Any = None) -> Any:
    """The part of a group that this process comes to."""
    return new_group(split_ranks[0] if split_ranks else [0], timeout, backend, pg_options,
                     group_desc=group_desc)


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0,
                 pg_options: Any = None) -> Any:
    """Not offered: a group of one cannot shrink."""
    raise NotImplementedError("shrink_group: a group of one cannot shrink")


# ---- checks -------------------------------------------------------------------------------------

def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"torch.Tensor\n             but got {type(value)} instead.")


def _check_list(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"List[torch.Tensor]\n             but got {type(values)} instead.")


def _check_op(tensor: Tensor, op: Any) -> None:
    if op in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and (tensor.is_floating_point()
                                                                or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{RedOpType(getattr(op, 'op', op)).name} with "
                           "non-integral dtype")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")


def supports_complex(reduceOp: Any) -> bool:
    """Can this reduction work on complex numbers? Those that order or mask them cannot."""
    return RedOpType(getattr(reduceOp, "op", reduceOp)) not in (
        RedOpType.MAX, RedOpType.MIN, RedOpType.PRODUCT, RedOpType.BAND, RedOpType.BOR,
        RedOpType.BXOR)


def _check_root(rank: int | None, group_rank: int | None, call: str) -> None:
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    given = group_rank if rank is None else rank
    if given != 0:
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid root rank: {given}")


def _move(output: Tensor, source: Tensor, call: str) -> None:
    """Write into `output` what has arrived."""
    if output.dtype is not source.dtype:
        raise ValueError("Invalid usage of tensors with different dtypes"
                         f"Found {output.dtype} and  {source.dtype}")
    if output.numel() != source.numel():
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid tensor size at index 0 (expected "
                           f"{_shape(source)}, got {_shape(output)})")
    with flambeau.no_grad():
        output.copy_(source.reshape(output.shape))


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def _one_entry(values: list[Any], call: str) -> Any:
    if len(values) != 1:
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid output tensor list at index 0 "
                           f"(expected length 1, got {len(values)})")
    return values[0]


def _done(tensors: Any, async_op: bool) -> Work | None:
    return Work(tensors) if async_op else None


def _outside(group: Any, call: str) -> bool:
    if _resolve(group) is not None:
        return False
    warnings.warn(f"Running {call} on global rank 0 which does not belong to the given group.",
                  stacklevel=3)
    return True


# ---- collectives of tensors ---------------------------------------------------------------------

def all_reduce(tensor: Tensor, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
               ) -> Work | None:
    """`tensor` becomes the sum (or what `op` says) of all processes' tensors."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    _check_op(tensor, op)
    return _done([tensor], async_op)


def all_reduce_coalesced(tensors: list[Tensor], op: Any = RedOpType.SUM, group: Any = None,
                         async_op: bool = False) -> Work | None:
    """`all_reduce` of several tensors."""
    _check_list(tensors, "tensors")
    if _outside(group, "all_reduce_coalesced"):
        return None
    for tensor in tensors:
        _check_op(tensor, op)
    return _done(list(tensors), async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """`tensor` becomes that of process `src`."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    _check_root(src, group_src, "broadcast")
    return _done([tensor], async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: Any = RedOpType.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_reduce` whose result process `dst` alone gets."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    _check_root(dst, group_dst, "reduce")
    _check_op(tensor, op)
    return _done([tensor], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
               async_op: bool = False) -> Work | None:
    """Entry i of `tensor_list` becomes the tensor of process i."""
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    if _outside(group, "all_gather"):
        return None
    _move(_one_entry(tensor_list, "allgather"), tensor, "allgather")
    return _done([list(tensor_list)], async_op)


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor],
                         group: Any = None, async_op: bool = False) -> Work | None:
    """`all_gather` of several tensors."""
    _check_list(input_tensor_list, "input_tensor_list")
    for outputs, tensor in zip(_one_entry(output_tensor_lists, "allgather"), input_tensor_list):
        _move(outputs, tensor, "allgather")
    _resolve(group)
    return _done(output_tensor_lists, async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """`output_tensor` becomes all processes' tensors, one after the other."""
    _check_tensor(output_tensor, "output_tensor")
    _check_tensor(input_tensor, "input_tensor")
    if _outside(group, "all_gather_into_tensor"):
        return None
    _move(output_tensor, input_tensor, "allgather")
    return _done([output_tensor], async_op)


all_gather_single = all_gather_into_tensor


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_gather` whose result process `dst`, 0 by default, alone gets."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "gather"):
        return None
    _check_root(0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _check_list(gather_list, "gather_list")
    _move(_one_entry(gather_list, "gather"), tensor, "gather")
    return _done([list(gather_list)], async_op)


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: Any = None, async_op: bool = False, group_src: int | None = None
            ) -> Work | None:
    """`tensor` of process i becomes entry i of the list of process `src`, 0 by default."""
    _check_tensor(tensor, "tensor")
    if _outside(group, "scatter"):
        return None
    _check_root(0 if src is None and group_src is None else src, group_src, "scatter")
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _check_list(scatter_list, "scatter_list")
    if len(scatter_list) != 1:
        raise RuntimeError("ProcessGroupGloo::scatter: Incorrect input list size "
                           f"{len(scatter_list)}. Input list size should be 1, same as size of "
                           "the process group.")
    _move(tensor, scatter_list[0], "scatter")
    return _done([tensor], async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = RedOpType.SUM,
                   group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes the sum of all entries i."""
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    if _outside(group, "reduce_scatter"):
        return None
    _move(output, _one_entry(input_list, "reduce_scatter"), "reduce_scatter")
    return _done([output], async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = RedOpType.SUM,
                          group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes part i of the sum of all inputs."""
    _check_tensor(input, "input")
    return reduce_scatter(output, [input], op, group, async_op)


reduce_scatter_single = reduce_scatter_tensor


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None, async_op: bool = False) -> Work | None:
    """Entry j of process i's outputs becomes entry i of process j's inputs."""
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    if _outside(group, "all_to_all"):
        return None
    _move(_one_entry(output_tensor_list, "alltoall"), _one_entry(input_tensor_list, "alltoall"),
          "alltoall")
    return _done(list(output_tensor_list), async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                      input_split_sizes: Any = None, group: Any = None, async_op: bool = False
                      ) -> Work | None:
    """`all_to_all` of the parts of one tensor."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    return all_to_all([output], [input], group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None,
            timeout: timedelta | None = None) -> Work | None:
    """Wait until all processes have come here."""
    return None if _outside(group, "barrier") else _done([], async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
                      ) -> None:
    """`barrier` that says which processes have not come."""
    _outside(group, "monitored_barrier")


# ---- point to point -----------------------------------------------------------------------------

def _to_another(call: str, rank: int | None, group: Any, role: str) -> None:
    _resolve(group)
    if rank == 0:
        raise ValueError(f"Invalid {role} rank: {role} rank should not be the same as the rank of "
                         "the current process.")
    raise NotImplementedError(f"{call}: a group of one has no other process to talk to")


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send a tensor to another process: a group of one has none."""
    _check_tensor(tensor, "tensor")
    _to_another("send", group_dst if dst is None else dst, group, "destination")


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receive a tensor from another process: a group of one has none."""
    _check_tensor(tensor, "tensor")
    _to_another("recv", group_src if src is None else src, group, "source")
    return -1


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """`send` that does not wait."""
    return send(tensor, dst, group, tag, group_dst)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Any:
    """`recv` that does not wait."""
    return recv(tensor, src, group, tag, group_src)


class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, the tensor, the other process."""

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None,
                 group: Any = None, tag: int = 0, group_peer: int | None = None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type "
                             "``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _resolve(group), tag
        self.peer = group_peer if peer is None else peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, peer={self.peer}, " \
               f"tensor={tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages at once."""
    if not p2p_op_list:
        raise ValueError("p2p_op_list must not be empty")
    return [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]


# ---- collectives of objects ---------------------------------------------------------------------

def _through_pickle(value: Any) -> Any:
    """What a value looks like on the other side."""
    return pickle.loads(pickle.dumps(value))


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Entry i of `object_list` becomes the object of process i."""
    if not _outside(group, "all_gather_object"):
        object_list[0] = _through_pickle(obj)


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: Any = None, group_dst: int | None = None) -> None:
    """`all_gather_object` whose result process `dst` alone gets."""
    if _outside(group, "gather_object"):
        return
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = _through_pickle(obj)


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """`object_list` becomes that of process `src`."""
    if not _outside(group, "broadcast_object_list"):
        _check_root(src, group_src, "broadcast")


def scatter_object_list(scatter_object_output_list: list[Any],
                        scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None
                        ) -> None:
    """The first output of process i becomes entry i of the inputs of process `src`."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at "
                         "least 1.")
    if _outside(group, "scatter_object_list"):
        return
    if not scatter_object_input_list or len(scatter_object_input_list) != 1:
        raise ValueError("scatter_object_list: one object for each process of the group is "
                         f"expected, 1, got {len(scatter_object_input_list or ())}")
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None,
                     device: Any = None, group_dst: int | None = None, use_batch: bool = False
                     ) -> None:
    """Send objects to another process: a group of one has none."""
    _to_another("send_object_list", group_dst if dst is None else dst, group, "destination")


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                     device: Any = None, group_src: int | None = None, use_batch: bool = False
                     ) -> int:
    """Receive objects from another process: a group of one has none."""
    _to_another("recv_object_list", group_src if src is None else src, group, "source")
    return -1
