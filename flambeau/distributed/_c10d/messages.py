"""Messages between two processes of a group, and collectives of objects."""
from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.collectives import (
    all_gather,
    broadcast,
    check_list_is_at,
    gather,
    member,
    root_of,
    scatter,
)
from flambeau.distributed._c10d.refusals import announced
from flambeau.distributed._c10d.work import Work
from flambeau.distributed._c10d.world import ranks_of, resolve

# ---- point to point -----------------------------------------------------------------------------


def _peer(group: Any, rank: int | None, group_rank: int | None, role: str) -> int:
    """The rank in the group of the other process."""
    found = root_of(group, rank, group_rank)
    if found == group.rank():
        raise ValueError(f"Invalid {role} rank: {role} rank should not be the same as the rank of "
                         "the current process.")
    if not 0 <= found < group.size():
        raise ValueError(f"Invalid {role} rank: {rank} in a group of {group.size()}")
    return found


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """`send` that does not wait."""
    found = member(group, "isend")
    if found is None:
        return None
    to = _peer(found, dst, group_dst, "destination")
    checks.single_tensor(tensor, "tensor")
    return found.send([tensor], to, tag)


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """`recv` that does not wait."""
    checks.single_tensor(tensor, "tensor")
    found = member(group, "irecv")
    if found is None:
        return None
    if src is None and group_src is None:
        return found.recv_anysource([tensor], tag)
    return found.recv([tensor], _peer(found, src, group_src, "source"), tag)


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
    if src is not None or group_src is not None:
        return src if src is not None else ranks_of(resolve(group))[group_src]
    return ranks_of(resolve(group))[work._source_rank()]


class P2POp:
    """One message of `batch_isend_irecv`: `isend` or `irecv`, the tensor, the other process."""

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None,
                 group: Any = None, tag: int = 0, group_peer: int | None = None):
        self.op, self.tensor, self.group, self.tag = op, tensor, resolve(group), tag
        self.group_peer = root_of(self.group, peer, group_peer)
        self.peer = ranks_of(self.group)[self.group_peer] if peer is None else peer

    def __new__(cls, op: Callable[..., Any], tensor: Tensor, peer: int | None = None,
                group: Any = None, tag: int = 0, group_peer: int | None = None) -> P2POp:
        check_message(op)
        checks.single_tensor(tensor, "tensor")
        return object.__new__(cls)

    def __repr__(self) -> str:
        mine = self.group.rank()
        source, to = (mine, self.group_peer) if self.op is isend else (self.group_peer, mine)
        return (f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, "
                f"group_dst={to},  {self.tensor.shape}, {self.tensor.dtype})")


P2POp.__module__ = "torch.distributed.distributed_c10d"


def check_message(op: Any) -> None:
    """A message is sent or received."""
    if op not in (isend, irecv):
        raise ValueError("Invalid ``op``. Expected ``op`` to be of type "
                         "``torch.distributed.isend`` or ``torch.distributed.irecv``.")


def check_messages(p2p_op_list: Any) -> None:
    """All messages of a batch are of one group."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type "
                         "``torch.distributed.P2POp``.")
    if any(p.group is not p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages at once."""
    if isinstance(p2p_op_list, list) and not p2p_op_list:
        raise ValueError("p2p_op_list must not be empty")
    check_messages(p2p_op_list)
    works = [p.op(p.tensor, group=p.group, tag=p.tag, group_dst=p.group_peer) if p.op is isend
             else p.op(p.tensor, group=p.group, tag=p.tag, group_src=p.group_peer)
             for p in p2p_op_list]
    return [work for work in works if work is not None]


# ---- objects ------------------------------------------------------------------------------------

def object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Tensor, Tensor]:
    """An object as bytes, and how many."""
    buffer = io.BytesIO()
    pickle.Pickler(buffer).dump(obj)
    data = flambeau.frombuffer(bytearray(buffer.getvalue()), dtype=flambeau.uint8)
    return data, flambeau.tensor([data.numel()])


def tensor_to_object(tensor: Tensor, tensor_size: Any, group: Any = None) -> Any:
    """The object that the first `tensor_size` bytes are."""
    return pickle.loads(bytes(tensor.cpu().numpy().tobytes()[:int(tensor_size)]))


def _padded(data: Tensor, size: int) -> Tensor:
    return flambeau.cat([data, data.new_zeros(size - data.numel())])


def _sizes(group: Any, size: Tensor) -> list[int]:
    """All processes' sizes."""
    sizes = [flambeau.zeros(1, dtype=flambeau.int64) for _ in range(group.size())]
    all_gather(sizes, size, group)
    return [int(s) for s in sizes]


@announced
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Entry i of `object_list` becomes the object of process i. Unpickles what the others send."""
    found = member(group, "all_gather_object")
    if found is None:
        return
    data, size = object_to_tensor(obj)
    sizes = _sizes(found, size)
    most = max(sizes)
    parts = [flambeau.empty(most, dtype=flambeau.uint8) for _ in sizes]
    all_gather(parts, _padded(data, most), found)
    for i, (part, n) in enumerate(zip(parts, sizes)):
        object_list[i] = tensor_to_object(part, n)


@announced
def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: Any = None, group_dst: int | None = None) -> None:
    """`all_gather_object` whose result process `dst` alone gets."""
    found = member(group, "gather_object")
    if found is None:
        return
    root = root_of(found, 0 if dst is None and group_dst is None else dst, group_dst)
    mine = found.rank() == root
    check_list_is_at(mine, list(object_gather_list or ()), "gather_list", "destination")
    data, size = object_to_tensor(obj)
    sizes = _sizes(found, size)
    most = max(sizes)
    parts = [flambeau.empty(most, dtype=flambeau.uint8) for _ in sizes] if mine else None
    gather(_padded(data, most), parts, group=found, group_dst=root)
    for i, part in enumerate(parts or ()):
        object_gather_list[i] = tensor_to_object(part, sizes[i])


@announced
def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                          device: Any = None, group_src: int | None = None) -> None:
    """`object_list` becomes that of process `src`."""
    found = member(group, "broadcast_object_list")
    if found is None:
        return
    root = root_of(found, 0 if src is None and group_src is None else src, group_src)
    sizes = flambeau.zeros(len(object_list), dtype=flambeau.int64)
    data = flambeau.empty(0, dtype=flambeau.uint8)
    if found.rank() == root:
        parts = [object_to_tensor(value)[0] for value in object_list]
        sizes = flambeau.tensor([p.numel() for p in parts], dtype=flambeau.int64)
        data = flambeau.cat(parts) if parts else data
    broadcast(sizes, group=found, group_src=root)
    if found.rank() != root:
        data = flambeau.empty(int(sizes.sum()), dtype=flambeau.uint8)
    broadcast(data, group=found, group_src=root)
    if found.rank() != root:
        object_list[:] = _split(data, sizes)


def _split(data: Tensor, sizes: Tensor) -> list[Any]:
    counts = sizes.tolist()
    return [tensor_to_object(part, n) for part, n in zip(data.split(counts), counts)]


@announced
def scatter_object_list(scatter_object_output_list: list[Any],
                        scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None
                        ) -> None:
    """The first output of process i becomes entry i of the inputs of process `src`."""
    found = member(group, "scatter_object_list")
    if found is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at "
                         "least 1.")
    root = root_of(found, 0 if src is None and group_src is None else src, group_src)
    mine = found.rank() == root
    if mine and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    parts = [object_to_tensor(value)[0] for value in scatter_object_input_list or ()] \
        if mine else []
    if mine and len(parts) != found.size():
        raise RuntimeError(f"scatter_object_list: Incorrect input list size {len(parts)}. "
                           f"Input list size should be {found.size()}, same as size of the "
                           "process group.")
    about = flambeau.tensor([max((p.numel() for p in parts), default=0)], dtype=flambeau.int64)
    broadcast(about, group=found, group_src=root)
    data = flambeau.empty(int(about), dtype=flambeau.uint8)
    size = flambeau.empty(1, dtype=flambeau.int64)
    scatter(data, [_padded(p, int(about)) for p in parts] or None, group=found, group_src=root)
    scatter(size, [flambeau.tensor([p.numel()]) for p in parts] or None, group=found,
            group_src=root)
    scatter_object_output_list[0] = tensor_to_object(data, size)


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None,
                     device: Any = None, group_dst: int | None = None, use_batch: bool = False
                     ) -> None:
    """Send objects to another process."""
    found = member(group, "send_object_list")
    if found is None:
        return
    to = _peer(found, dst, group_dst, "destination")
    parts = [object_to_tensor(value)[0] for value in object_list]
    send(flambeau.tensor([p.numel() for p in parts], dtype=flambeau.int64), group=found,
         group_dst=to)
    send(flambeau.cat(parts), group=found, group_dst=to)


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                     device: Any = None, group_src: int | None = None, use_batch: bool = False
                     ) -> int:
    """Receive as many objects as the list has from another process, or from any; gives its
    rank."""
    found = member(group, "recv_object_list")
    if found is None:
        return -1
    sizes = flambeau.zeros(len(object_list), dtype=flambeau.int64)
    source = recv(sizes, src, found, group_src=group_src)
    data = flambeau.empty(int(sizes.sum()), dtype=flambeau.uint8)
    recv(data, source, found)
    object_list[:] = _split(data, sizes)
    return source
