"""Collectives: what the processes of a group do together with tensors and objects."""
from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._groups import RedOpType, _resolve
from flambeau.distributed._process_group import (
    ProcessGroup,
    Work,
    fitting,
    of_bytes,
    reduced,
)

# ---- checks -------------------------------------------------------------------------------------


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"torch.Tensor\n             but got {type(value)} instead.")


def _check_list(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"List[torch.Tensor]\n             but got {type(values)} instead.")


def _check_op(tensor: Tensor, op: Any) -> str:
    """The name of a reduction that fits the tensor."""
    if op in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and (tensor.is_floating_point()
                                                                or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{RedOpType(getattr(op, 'op', op)).name} with "
                           "non-integral dtype")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    name = RedOpType(getattr(op, "op", op)).name
    if name == "PREMUL_SUM":
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    return name


def supports_complex(reduceOp: Any) -> bool:
    """Can this reduction work on complex numbers? Those that order or mask them cannot."""
    return RedOpType(getattr(reduceOp, "op", reduceOp)) not in (
        RedOpType.MAX, RedOpType.MIN, RedOpType.PRODUCT, RedOpType.BAND, RedOpType.BOR,
        RedOpType.BXOR)


def _root(group: ProcessGroup, rank: int | None, group_rank: int | None, call: str) -> int:
    """The rank in the group of the process that a collective begins or ends at."""
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None:
        found = group_rank
    elif rank in group.ranks:
        found = group.ranks.index(rank)
    elif len(group.ranks) < _resolve(None).size():
        raise ValueError(f"Global rank {rank} is not part of group {group}")
    else:
        found = rank                                            # type: ignore[assignment]
    if not 0 <= found < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid root rank: {found}")
    return found


def _same_type(outputs: list[Tensor], tensor: Tensor) -> None:
    for output in outputs:
        if output.dtype is not tensor.dtype:
            raise ValueError("Invalid usage of tensors with different dtypes"
                             f"Found {output.dtype} and  {tensor.dtype}")


def _check_outputs(outputs: list[Tensor], tensor: Tensor, count: int, call: str) -> None:
    """One entry for each process, of the type and size of what each gives."""
    if len(outputs) != count:
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid output tensor list at index 0 "
                           f"(expected length {count}, got {len(outputs)})")
    _same_type(outputs, tensor)
    for i, output in enumerate(outputs):
        _check_size(output, tensor, call, i)


def _check_size(output: Tensor, tensor: Tensor, call: str, index: int = 0) -> None:
    if output.numel() != tensor.numel():
        raise RuntimeError(f"ProcessGroupGloo::{call}: invalid tensor size at index {index} "
                           f"(expected {_shape(tensor)}, got {_shape(output)})")


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def _member(group: Any, call: str) -> ProcessGroup | None:
    """The group of a call; None, with a warning, if this process is not in it."""
    found = _resolve(group)
    if found is None:
        warnings.warn(f"Running {call} on global rank {_resolve(None).rank()} which does not "
                      "belong to the given group.", stacklevel=3)
    return found


def _finish(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


# ---- collectives of tensors ---------------------------------------------------------------------

def all_reduce(tensor: Tensor, op: Any = RedOpType.SUM, group: Any = None, async_op: bool = False
               ) -> Work | None:
    """`tensor` becomes the sum (or what `op` says) of all processes' tensors."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "all_reduce")
    if member is None:
        return None
    name = _check_op(tensor, op)
    return _finish(member.start([tensor], lambda key: member.run_allreduce(key, tensor, name)),
                   async_op)


def all_reduce_coalesced(tensors: list[Tensor], op: Any = RedOpType.SUM, group: Any = None,
                         async_op: bool = False) -> Work | None:
    """`all_reduce` of several tensors."""
    _check_list(tensors, "tensors")
    member = _member(group, "all_reduce_coalesced")
    if member is None:
        return None
    names = [_check_op(tensor, op) for tensor in tensors]

    def run(key: bytes) -> None:
        for i, tensor in enumerate(tensors):
            member.run_allreduce(key + b"%d." % i, tensor, names[i])
    return _finish(member.start(list(tensors), run), async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """`tensor` becomes that of process `src`."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "broadcast")
    if member is None:
        return None
    return _finish(member.broadcast([tensor], _root(member, src, group_src, "broadcast")),
                   async_op)


def reduce(tensor: Tensor, dst: int | None = None, op: Any = RedOpType.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_reduce` whose result process `dst` alone gets."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "reduce")
    if member is None:
        return None
    root, name = _root(member, dst, group_dst, "reduce"), _check_op(tensor, op)

    def run(key: bytes) -> None:
        found = _collected(member, key, tensor, root, [tensor] * member.size(), "reduce")
        if found is not None:
            total = reduced(found, name)
            tensor.copy_((total / member.size() if name == "AVG" else total).view(tensor.shape))
    return _finish(member.start([tensor], run), async_op)


def _collected(member: ProcessGroup, key: bytes, tensor: Tensor, root: int, like: list[Tensor],
               what: str) -> list[Tensor] | None:
    """All processes' tensors, flat, at the root."""
    if member.rank() != root:
        member.put(root, key, tensor)
        return None
    found = {root: tensor.detach().reshape(-1)}
    for source in member.others():
        found[source] = member.take(source, key, like[source], what)
    return [found[i] for i in range(member.size())]


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
               async_op: bool = False) -> Work | None:
    """Entry i of `tensor_list` becomes the tensor of process i."""
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    member = _member(group, "all_gather")
    if member is None:
        return None
    _check_outputs(tensor_list, tensor, member.size(), "allgather")

    def run(key: bytes) -> None:
        found = member.gathered(key, tensor, tensor_list, "allgather")
        _store(tensor_list, found, "allgather")
    return _finish(member.start([list(tensor_list)], run), async_op)


def _store(outputs: list[Tensor], found: list[Tensor], call: str) -> None:
    for output, value in zip(outputs, found):
        output.copy_(fitting(value, output, call))


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor],
                         group: Any = None, async_op: bool = False) -> Work | None:
    """`all_gather` of several tensors: entry i of the outputs is of process i."""
    _check_list(input_tensor_list, "input_tensor_list")
    member = _resolve(group)
    for j, tensor in enumerate(input_tensor_list):
        _check_outputs([outputs[j] for outputs in output_tensor_lists], tensor, member.size(),
                       "allgather")

    def run(key: bytes) -> None:
        for j, tensor in enumerate(input_tensor_list):
            outputs = [each[j] for each in output_tensor_lists]
            _store(outputs, member.gathered(key + b"%d." % j, tensor, outputs, "allgather"),
                   "allgather")
    return _finish(member.start(output_tensor_lists, run), async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """`output_tensor` becomes all processes' tensors, one after the other."""
    _check_tensor(output_tensor, "output_tensor")
    _check_tensor(input_tensor, "input_tensor")
    member = _member(group, "all_gather_into_tensor")
    if member is None:
        return None
    _same_type([output_tensor], input_tensor)
    if output_tensor.numel() != member.size() * input_tensor.numel():
        raise RuntimeError("ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected "
                           f"{member.size()} times {_shape(input_tensor)}, got "
                           f"{_shape(output_tensor)})")

    def run(key: bytes) -> None:
        found = member.gathered(key, input_tensor, [input_tensor] * member.size(), "allgather")
        output_tensor.copy_(flambeau.cat(found).view(output_tensor.shape))
    return _finish(member.start([output_tensor], run), async_op)


all_gather_single = all_gather_into_tensor


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None,
           group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """`all_gather` whose result process `dst`, 0 by default, alone gets."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "gather")
    if member is None:
        return None
    root = _root(member, 0 if dst is None and group_dst is None else dst, group_dst, "gather")
    outputs = list(gather_list or ())
    if member.rank() != root:
        if outputs:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination "
                             "ranks.")
    else:
        if not outputs:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list(outputs, "gather_list")
        _check_outputs(outputs, tensor, member.size(), "gather")

    def run(key: bytes) -> None:
        found = _collected(member, key, tensor, root, outputs, "gather")
        if found is not None:
            _store(outputs, found, "gather")
    return _finish(member.start([outputs], run), async_op)


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: Any = None, async_op: bool = False, group_src: int | None = None
            ) -> Work | None:
    """`tensor` of process i becomes entry i of the list of process `src`, 0 by default."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "scatter")
    if member is None:
        return None
    root = _root(member, 0 if src is None and group_src is None else src, group_src, "scatter")
    parts = list(scatter_list or ())
    if member.rank() != root:
        if parts:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source "
                             "ranks.")
    else:
        if not parts:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_list(parts, "scatter_list")
        if len(parts) != member.size():
            raise RuntimeError("ProcessGroupGloo::scatter: Incorrect input list size "
                               f"{len(parts)}. Input list size should be {member.size()}, same "
                               "as size of the process group.")
        _same_type(parts, tensor)
        for i, part in enumerate(parts):
            _check_size(part, tensor, "scatter", i)

    def run(key: bytes) -> None:
        if member.rank() == root:
            for to in member.others():
                member.put(to, key, parts[to])
            found = parts[root].detach().reshape(-1)
        else:
            found = member.take(root, key, tensor, "scatter")
        _store([tensor], [found], "scatter")
    return _finish(member.start([tensor], run), async_op)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = RedOpType.SUM,
                   group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes the sum of all entries i."""
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    member = _member(group, "reduce_scatter")
    if member is None:
        return None
    _check_outputs(input_list, output, member.size(), "reduce_scatter")
    return _reduce_scatter(member, output, list(input_list), op, async_op)


def _reduce_scatter(member: ProcessGroup, output: Tensor, parts: list[Tensor], op: Any,
                    async_op: bool) -> Work | None:
    name = _check_op(output, op)

    def run(key: bytes) -> None:
        total = reduced(member.exchange(key, parts, [output] * member.size(), "reduce_scatter"),
                        name)
        _store([output], [total / member.size() if name == "AVG" else total], "reduce_scatter")
    return _finish(member.start([output], run), async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = RedOpType.SUM,
                          group: Any = None, async_op: bool = False) -> Work | None:
    """`output` of process i becomes part i of the sum of all inputs."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    member = _member(group, "reduce_scatter_tensor")
    if member is None:
        return None
    _same_type([output], input)
    if input.numel() != member.size() * output.numel():
        raise RuntimeError("ProcessGroupGloo::reduce_scatter: invalid tensor size at index 0 "
                           f"(expected {member.size()} times {_shape(output)}, got "
                           f"{_shape(input)})")
    parts = list(input.detach().reshape(member.size(), -1))
    return _reduce_scatter(member, output, parts, op, async_op)


reduce_scatter_single = reduce_scatter_tensor


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None, async_op: bool = False) -> Work | None:
    """Entry j of process i's outputs becomes entry i of process j's inputs."""
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    member = _member(group, "all_to_all")
    if member is None:
        return None
    for values in (output_tensor_list, input_tensor_list):
        if len(values) != member.size():
            raise RuntimeError("ProcessGroupGloo::alltoall: one tensor for each of the "
                               f"{member.size()} processes is expected, got {len(values)}")
    _same_type(output_tensor_list, input_tensor_list[0])

    def run(key: bytes) -> None:
        found = member.exchange(key, list(input_tensor_list), output_tensor_list, "alltoall")
        _store(output_tensor_list, found, "alltoall")
    return _finish(member.start(list(output_tensor_list), run), async_op)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                      input_split_sizes: Any = None, group: Any = None, async_op: bool = False
                      ) -> Work | None:
    """`all_to_all` of the parts of one tensor: of equal size, or of these numbers of rows."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    member = _member(group, "all_to_all_single")
    if member is None:
        return None

    def parts(tensor: Tensor, sizes: Any) -> list[Tensor]:
        if not sizes:
            if tensor.shape[0] % member.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [tensor.shape[0] // member.size()] * member.size()
        if sum(sizes) != tensor.shape[0] or len(sizes) != member.size():
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        return list(tensor.detach().split(list(sizes)))
    return all_to_all(parts(output, output_split_sizes), parts(input, input_split_sizes), group,
                      async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None,
            timeout: timedelta | None = None) -> Work | None:
    """Wait until all processes have come here."""
    member = _member(group, "barrier")
    return None if member is None else _finish(member.barrier(), async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
                      ) -> None:
    """`barrier` that says which processes have not come."""
    member = _member(group, "monitored_barrier")
    if member is None:
        return
    seconds = (timeout or member.timeout).total_seconds()
    empty = flambeau.empty(0)

    def run(key: bytes) -> None:
        if member.rank():
            member.put(0, key, empty)
            member.take(0, key + b"go", empty, "monitored barrier")
            return
        missing = []
        for source in range(1, member.size()):
            try:
                member.peers.receive([member.ranks[source]], key, seconds, "monitored barrier")
            except RuntimeError:
                missing.append(source)
                if not wait_all_ranks:
                    break
        if missing:
            raise RuntimeError(f"Rank {', '.join(map(str, missing))} failed to pass "
                               f"monitoredBarrier in {round(seconds * 1000)} ms")
        for to in range(1, member.size()):
            member.put(to, key + b"go", empty)
    member.start([], run).wait()


# ---- point to point -----------------------------------------------------------------------------

def _peer(group: ProcessGroup, rank: int | None, group_rank: int | None, role: str) -> int:
    """The rank in the group of the other process."""
    found = group.ranks.index(rank) if group_rank is None and rank in group.ranks else \
        rank if group_rank is None else group_rank
    if found == group.rank():
        raise ValueError(f"Invalid {role} rank: {role} rank should not be the same as the rank of "
                         "the current process.")
    if found is None or not 0 <= found < group.size():
        raise ValueError(f"Invalid {role} rank: {rank} in a group of {group.size()}")
    return found


def _message(group: ProcessGroup, tag: int) -> bytes:
    return f"{group.group_name}:p2p:{tag}".encode()


class _Receiving(Work):
    """Waits for a message in the thread that asks for it."""

    def __init__(self, receive: Callable[[], int], tensor: Tensor):
        super().__init__([tensor], done=False)
        self._receive = receive

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the message is there."""
        if not self.is_completed():
            error: BaseException | None = None
            try:
                with flambeau.no_grad():
                    self.source = self._receive()
            except Exception as raised:
                error = raised
            self._finish(error)
        return super().wait()


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """`send` that does not wait."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "isend")
    if member is None:
        return None
    to = _peer(member, dst, group_dst, "destination")
    copy = tensor.detach().clone()
    key = _message(member, tag)
    work = Work([tensor], done=False)

    def run() -> None:
        error: BaseException | None = None
        try:
            member.put(to, key, copy)
        except Exception as raised:
            error = raised
        work._finish(error)
    member.in_background(run)
    return work


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """`recv` that does not wait."""
    _check_tensor(tensor, "tensor")
    member = _member(group, "irecv")
    if member is None:
        return None
    anyone = src is None and group_src is None
    sources = [member.ranks[i] for i in member.others()] if anyone \
        else [member.ranks[_peer(member, src, group_src, "source")]]
    key, seconds = _message(member, tag), member.timeout.total_seconds()

    def receive() -> int:
        source, data = member.peers.receive(sources, key, seconds, "recv")
        tensor.copy_(fitting(of_bytes(data, tensor), tensor, "recv"))
        return source
    return _Receiving(receive, tensor)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send a tensor to another process."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receive a tensor from another process, or from any; gives its rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, the tensor, the other process."""

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None,
                 group: Any = None, tag: int = 0, group_peer: int | None = None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type "
                             "``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _resolve(group), tag
        self.peer = self.group.ranks[group_peer] if peer is None else peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, peer={self.peer}, " \
               f"tensor={tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages at once."""
    if not p2p_op_list:
        raise ValueError("p2p_op_list must not be empty")
    return [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]


# ---- collectives of objects ---------------------------------------------------------------------

def _pickled(value: Any) -> Tensor:
    return flambeau.frombuffer(bytearray(pickle.dumps(value)), dtype=flambeau.uint8)


def _unpickled(data: Tensor) -> Any:
    return pickle.loads(bytes(data.numpy()))


_BYTES = flambeau.empty(0, dtype=flambeau.uint8)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Entry i of `object_list` becomes the object of process i. Unpickles what the others send."""
    member = _member(group, "all_gather_object")
    if member is None:
        return

    def run(key: bytes) -> None:
        found = member.gathered(key, _pickled(obj), [_BYTES] * member.size(), "allgather")
        for i, data in enumerate(found):
            object_list[i] = _unpickled(data)
    member.start(object_list, run).wait()


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: Any = None, group_dst: int | None = None) -> None:
    """`all_gather_object` whose result process `dst` alone gets."""
    member = _member(group, "gather_object")
    if member is None:
        return
    root = _root(member, 0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if member.rank() == root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")

    def run(key: bytes) -> None:
        found = _collected(member, key, _pickled(obj), root, [_BYTES] * member.size(), "gather")
        if found is not None:
            values = [_unpickled(data) for data in found]
            object_gather_list[:len(found)] = values            # type: ignore[index]
    member.start(object_gather_list, run).wait()


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """`object_list` becomes that of process `src`."""
    member = _member(group, "broadcast_object_list")
    if member is None:
        return
    root = _root(member, src, group_src, "broadcast")

    def run(key: bytes) -> None:
        if member.rank() == root:
            data = _pickled(object_list)
            for to in member.others():
                member.put(to, key, data)
        else:
            object_list[:] = _unpickled(member.take(root, key, _BYTES, "broadcast"))
    member.start(object_list, run).wait()


def scatter_object_list(scatter_object_output_list: list[Any],
                        scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None
                        ) -> None:
    """The first output of process i becomes entry i of the inputs of process `src`."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at "
                         "least 1.")
    member = _member(group, "scatter_object_list")
    if member is None:
        return
    root = _root(member, 0 if src is None and group_src is None else src, group_src, "scatter")
    given = list(scatter_object_input_list or ())
    if member.rank() == root and len(given) != member.size():
        raise ValueError("scatter_object_list: one object for each process of the group is "
                         f"expected, {member.size()}, got {len(given)}")

    def run(key: bytes) -> None:
        if member.rank() == root:
            for to in member.others():
                member.put(to, key, _pickled(given[to]))
            scatter_object_output_list[0] = _unpickled(_pickled(given[root]))
        else:
            scatter_object_output_list[0] = _unpickled(member.take(root, key, _BYTES, "scatter"))
    member.start(scatter_object_output_list, run).wait()


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None,
                     device: Any = None, group_dst: int | None = None, use_batch: bool = False
                     ) -> None:
    """Send objects to another process."""
    member = _member(group, "send_object_list")
    if member is not None:
        to = _peer(member, dst, group_dst, "destination")
        member.put(to, _message(member, -1), _pickled(object_list))


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                     device: Any = None, group_src: int | None = None, use_batch: bool = False
                     ) -> int:
    """Receive objects from another process, or from any; gives its rank."""
    member = _member(group, "recv_object_list")
    if member is None:
        return -1
    anyone = src is None and group_src is None
    sources = [member.ranks[i] for i in member.others()] if anyone \
        else [member.ranks[_peer(member, src, group_src, "source")]]
    source, data = member.peers.receive(sources, _message(member, -1),
                                        member.timeout.total_seconds(), "recv")
    object_list[:] = pickle.loads(data)
    return source
