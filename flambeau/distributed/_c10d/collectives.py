"""Collectives: what the processes of a group do together with tensors."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d import options as o
from flambeau.distributed._c10d.backends.registry import check_timeout
from flambeau.distributed._c10d.reduce_op import RedOpType, op_type
from flambeau.distributed._c10d.refusals import announced
from flambeau.distributed._c10d.work import Work
from flambeau.distributed._c10d.world import _world, ranks_of, resolve

# ---- collectives that `coalescing` collects, to run together -------------------------------------

class _IllegalWork(Work):
    """Stands for a collective that has been collected: nothing can be asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result",
                    "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


@dataclass
class _CollOp:
    """A collective that has been collected."""
    op: Callable[..., Any]
    tensor: Tensor
    dst_tensor: Tensor | None = None
    redop: Any = None
    root: int | None = None


NO_WORK = object()                      # collected, and there is nothing to wait for


def collect(group: Any, op: _CollOp, async_op: bool) -> Any:
    """Note a collective, if those of the group are collected now; None if they are not."""
    if group not in _world.pg_coalesce_state:
        return None
    _world.pg_coalesce_state[group].append(op)
    return _IllegalWork() if async_op else NO_WORK


# ---- collectives ---------------------------------------------------------------------------------

def supports_complex(reduceOp: Any) -> bool:
    """Can this reduction work on complex numbers? Those that order or mask them cannot."""
    return op_type(reduceOp) not in (
        RedOpType.MAX, RedOpType.MIN, RedOpType.PRODUCT, RedOpType.BAND, RedOpType.BOR,
        RedOpType.BXOR)


def _check_complex(tensor: Tensor, op: Any, call: str) -> None:
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{call} does not support {op} on complex tensors")


def root_of(group: Any, rank: int | None, group_rank: int | None) -> int:
    """The rank in the group of the process that a collective begins or ends at."""
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None or group is _world.default_pg:
        return group_rank if group_rank is not None else rank
    members = ranks_of(group)
    if rank not in members:
        raise ValueError(f"Global rank {rank} is not part of group {group}")
    return members.index(rank)


def warn_not_in_group(call: str) -> None:
    """A process calls a collective of a group that it is not in."""
    about = "" if _world.default_pg is None else _world.default_pg.rank()
    warnings.warn(f"Running {call} on global rank {about} which does not belong to the given "
                  "group.", stacklevel=4)


def member(group: Any, call: str) -> Any:
    """The group of a call; None, with a warning, if this process is not in it."""
    found = resolve(group)
    if found is None:
        warn_not_in_group(call)
    return found


def finish(work: Work | None, async_op: bool) -> Work | None:
    """What a call gives: nothing as soon as it is done, or its work."""
    if work is NO_WORK:
        return None
    if async_op or work is None:
        return work
    work.wait()
    return None


def _run(group: Any, op: _CollOp, async_op: bool, start: Callable[[], Work]) -> Work | None:
    """Collect a collective, if those of the group are collected now, or carry it out."""
    collected = collect(group, op, async_op)
    return finish(start(), async_op) if collected is None else finish(collected, True)


@announced
def all_reduce(tensor: Tensor, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
               ) -> Work | None:
    """`tensor` becomes the sum (or what `op` says) of all processes' tensors."""
    checks.single_tensor(tensor, "tensor")
    options = o.AllreduceOptions(op, asyncOp=async_op)
    found = member(group, "all_reduce")
    if found is None:
        return None
    if tensor.is_sparse:
        return finish(_all_reduce_sparse(tensor, op, found), async_op)
    _check_complex(tensor, op, "all_reduce")
    return _run(found, _CollOp(all_reduce, tensor, None, op), async_op,
                lambda: found.allreduce([tensor], options))


def _all_reduce_sparse(tensor: Tensor, op: Any, group: Any) -> Work:
    if op_type(op) is not RedOpType.SUM:
        raise RuntimeError(f"ProcessGroup{group.name().capitalize()}::allreduce: unsupported "
                           "reduction operation (allreduce of sparse tensors only works with "
                           "ReduceOp.SUM)")
    tensor.copy_(sum_of_sparse(tensor, group))
    return Work([tensor])


def sum_of_sparse(tensor: Tensor, group: Any) -> Tensor:
    """The sum of all processes' sparse tensors, each of which may have other entries."""
    tensor = tensor.coalesce()
    columns, values = tensor.indices().t(), tensor.values().detach()
    counts = [flambeau.zeros(1, dtype=flambeau.int64) for _ in range(group.size())]
    all_gather(counts, flambeau.tensor([len(values)]), group)
    sizes = [int(count) for count in counts]
    return flambeau.sparse_coo_tensor(
        _gathered_rows(columns, sizes, group).t(), _gathered_rows(values, sizes, group),
        tensor.shape, check_invariants=False).coalesce()


def _gathered_rows(rows: Tensor, sizes: list[int], group: Any) -> Tensor:
    """The rows of all processes, which have `sizes` of them."""
    most = max(sizes)
    parts = [rows.new_empty(most, *rows.shape[1:]) for _ in sizes]
    all_gather(parts, flambeau.cat([rows, rows.new_zeros(most - len(rows), *rows.shape[1:])]),
               group)
    return flambeau.cat([part[:size] for part, size in zip(parts, sizes)])


@announced
def all_reduce_coalesced(tensors: list[Tensor], op: Any = RedOpType.SUM, group: Any = None,
                         async_op: bool = False) -> Work | None:
    """`all_reduce` of several tensors."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    checks.tensor_list(tensors, "tensor")
    checks.same_type(*tensors)
    found = member(group, "all_reduce_coalesced")
    if found is None:
        return None
    for tensor in tensors:
        _check_complex(tensor, op, "all_reduce")
    options = o.AllreduceCoalescedOptions(op, asyncOp=async_op)
    return finish(found.allreduce_coalesced(list(tensors), options), async_op)


@announced
def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """`tensor` becomes that of process `src`."""
    found = member(group, "broadcast")
    root = None if found is None else root_of(found, src, group_src)
    checks.single_tensor(tensor, "tensor")
    if found is None:
        return None
    options = o.BroadcastOptions(root, 0, asyncOp=async_op)
    return finish(found.broadcast([tensor], options), async_op)


@announced
def reduce(tensor: Tensor, dst: int | None = None, op: Any = RedOpType.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_reduce` whose result process `dst` alone gets."""
    found = member(group, "reduce")
    root = None if found is None else root_of(found, dst, group_dst)
    checks.single_tensor(tensor, "tensor")
    if found is None:
        return None
    if tensor.is_complex() and not supports_complex(op):
        raise RuntimeError("reduce does not supporton complex tensors")     # PyTorch's words
    return finish(found.reduce([tensor], o.ReduceOptions(op, root, asyncOp=async_op)), async_op)


@announced
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
               async_op: bool = False) -> Work | None:
    """Entry i of `tensor_list` becomes the tensor of process i."""
    checks.tensor_list(tensor_list, "tensor_list")
    checks.single_tensor(tensor, "tensor")
    checks.same_type(*tensor_list, tensor)
    found = member(group, "all_gather")
    if found is None:
        return None
    options = o.AllgatherOptions(asyncOp=async_op)
    return finish(found.allgather([list(tensor_list)], [tensor], options), async_op)


@announced
def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor],
                         group: Any = None, async_op: bool = False) -> Work | None:
    """`all_gather` of several tensors: entry i of the outputs is of process i."""
    found = member(group, "all_gather_coalesced")
    if found is None:
        return None
    checks.tensor_list(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        checks.tensor_list(outputs, "output_tensor_lists")
    return finish(found.allgather_coalesced(output_tensor_lists, list(input_tensor_list),
                                            o.AllgatherOptions(asyncOp=async_op)), async_op)


@announced
def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """`output_tensor` becomes all processes' tensors, one after the other."""
    checks.single_tensor(input_tensor, "input_tensor")
    checks.single_tensor(output_tensor, "output_tensor")
    found = member(group, "all_gather_into_tensor")
    if found is None:
        return None
    return _run(found, _CollOp(all_gather_into_tensor, input_tensor, output_tensor), async_op,
                lambda: found._allgather_base(output_tensor, input_tensor,
                                              o.AllgatherOptions(asyncOp=async_op)))


def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                      async_op: bool = False) -> Work | None:
    """The newer name of `all_gather_into_tensor`."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


@announced
def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_gather` whose result process `dst`, 0 by default, alone gets."""
    _check_like(tensor, gather_list, "gather_list")
    found = member(group, "gather")
    if found is None:
        return None
    root, lists = _lists_at_root(found, dst, group_dst, gather_list, "gather_list", "destination")
    options = o.GatherOptions(root, asyncOp=async_op)
    return finish(found.gather(lists, [tensor], options), async_op)


def _check_like(tensor: Tensor, others: list[Tensor] | None, name: str) -> None:
    checks.single_tensor(tensor, "tensor")
    if others:
        checks.tensor_list(others, name)
        checks.same_type(tensor, *others)


def _lists_at_root(group: Any, rank: int | None, group_rank: int | None,
                   tensors: list[Tensor] | None, name: str, role: str
                   ) -> tuple[int, list[list[Tensor]]]:
    """The rank of the root in the group, by default 0, and at the root the list of tensors."""
    root = root_of(group, 0 if rank is None and group_rank is None else rank, group_rank)
    at_root = group.rank() == root
    check_list_is_at(at_root, tensors or [], name, role)
    return root, [tensors or []] if at_root else []


def check_list_is_at(at_root: bool, values: list[Any], name: str, role: str) -> None:
    """The list of all tensors is given by the root, and by no one else."""
    if at_root and not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if values and not at_root:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


@announced
def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: Any = None, async_op: bool = False, group_src: int | None = None
            ) -> Work | None:
    """`tensor` of process i becomes entry i of the list of process `src`, 0 by default."""
    _check_like(tensor, scatter_list, "scatter_list")
    found = member(group, "scatter")
    if found is None:
        return None
    root, lists = _lists_at_root(found, src, group_src, scatter_list, "scatter_list", "source")
    options = o.ScatterOptions(root, asyncOp=async_op)
    return finish(found.scatter([tensor], lists, options), async_op)


@announced
def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = RedOpType.SUM,
                   group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes the sum of all entries i."""
    checks.single_tensor(output, "output")
    checks.tensor_list(input_list, "input_list")
    checks.same_type(output, *input_list)
    found = member(group, "reduce_scatter")
    if found is None:
        return None
    options = o.ReduceScatterOptions(op, asyncOp=async_op)
    return finish(found.reduce_scatter([output], [list(input_list)], options), async_op)


@announced
def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = RedOpType.SUM,
                          group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes part i of the sum of all inputs."""
    checks.single_tensor(output, "output")
    checks.single_tensor(input, "input")
    found = member(group, "reduce_scatter_tensor")
    if found is None:
        return None
    return _run(found, _CollOp(reduce_scatter_tensor, input, output, op), async_op,
                lambda: found._reduce_scatter_base(output, input,
                                                   o.ReduceScatterOptions(op, asyncOp=async_op)))


def reduce_scatter_single(output: Tensor, input: Tensor, op: Any = RedOpType.SUM,
                          group: Any = None, async_op: bool = False) -> Work | None:
    """The newer name of `reduce_scatter_tensor`."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


@announced
def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None, async_op: bool = False) -> Work | None:
    """Entry j of process i's outputs becomes entry i of process j's inputs."""
    found = member(group, "all_to_all")
    if found is None:
        return None
    checks.tensor_list(output_tensor_list, "output_tensor_list")
    checks.tensor_list(input_tensor_list, "input_tensor_list")
    return finish(found.alltoall(list(output_tensor_list), list(input_tensor_list),
                                 o.AllToAllOptions(asyncOp=async_op)), async_op)


@announced
def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                      input_split_sizes: Any = None, group: Any = None, async_op: bool = False
                      ) -> Work | None:
    """`all_to_all` of the parts of one tensor: of equal size, or of these numbers of rows."""
    found = member(group, "all_to_all_single")
    if found is None:
        return None
    checks.single_tensor(output, "output")
    checks.single_tensor(input, "input")
    options = o.AllToAllOptions(asyncOp=async_op)
    return finish(found.alltoall_base(output, input, list(output_split_sizes or ()),
                                      list(input_split_sizes or ()), options), async_op)


@announced
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None,
            timeout: timedelta | None = None) -> Work | None:
    """Wait until all processes have come here."""
    found = member(group, "barrier")
    if found is None:
        return None
    given = o.BarrierOptions(asyncOp=async_op)
    if timeout is not None:
        check_timeout(timeout)
        given.timeout = timeout
    return finish(found.barrier(given), async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
                      ) -> None:
    """`barrier` that says which processes have not come."""
    found = member(group, "monitored_barrier")
    if found is not None:
        if isinstance(timeout, float):
            warnings.warn("Please specify timeout arg as a timedelta. Converting current value of "
                          f"{timeout} assuming it represents seconds", stacklevel=2)
            timeout = timedelta(seconds=timeout)
        if timeout is not None:
            check_timeout(timeout)
        found.monitored_barrier(timeout, wait_all_ranks)


def broadcast_coalesced(process_group: Any, tensors: list[Tensor], buffer_size: int, src: int = 0
                        ) -> None:
    """Give all processes the tensors of one: those of one type in buffers of `buffer_size`
    bytes."""
    buckets: list[list[Tensor]] = []
    room: dict[Any, int] = {}
    open_bucket: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if tensor.dtype not in open_bucket or room[tensor.dtype] < size:
            open_bucket[tensor.dtype] = []
            room[tensor.dtype] = buffer_size
            buckets.append(open_bucket[tensor.dtype])
        open_bucket[tensor.dtype].append(tensor)
        room[tensor.dtype] -= size
    with flambeau.no_grad():
        for bucket in buckets:
            flat = flambeau.cat([t.detach().reshape(-1) for t in bucket])
            process_group.broadcast([flat], o.BroadcastOptions(src, 0)).wait()
            for tensor, part in zip(bucket, flat.split([t.numel() for t in bucket])):
                tensor.copy_(part.view(tensor.shape))
