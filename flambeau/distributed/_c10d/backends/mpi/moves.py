"""How tensors move over MPI: each function gives the requests that it waits for, step by step.

Small sums of types that MPI knows are MPI's own. All else is made of messages between pairs:
what is reduced is cut into a part for each process, which gets that part of all in blocks, adds
them up by our kernels, in the order of the ranks, and sends the result to all. So every type has
its sum, halves are added in float32, and all processes get the same bits.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d.backends.mpi.data import (
    ONLY_NATIVE,
    Target,
    as_bytes,
    as_tensor,
    divide,
    memory,
    native,
    reduce_into,
    values,
)

Requests = Iterator[Any]
_SMALL = 1 << 14                        # bytes that go through MPI's own reduction
_BLOCK = 1 << 20                        # bytes of a part that are reduced at a time


class Channel:
    """The members of a group and their communicator, `rank` of `size`; `tag` marks what belongs
    to the collective that runs now."""

    def __init__(self, comm: Any, rank: int, size: int):
        self.comm, self.rank, self.size, self.tag = comm, rank, size, 0
        self.others = [(rank + i) % size for i in range(1, size)]

    def send(self, array: np.ndarray, to: int) -> list[Any]:
        """The request of a message, if there is anything in it."""
        return [self.comm.Isend(as_bytes(array), to, self.tag)] if array.size else []

    def receive(self, array: np.ndarray, source: int) -> list[Any]:
        """The request of what the other sends."""
        return [self.comm.Irecv(as_bytes(array), source, self.tag)] if array.size else []


def all_reduce(channel: Channel, tensor: Tensor, op: str) -> Requests:
    """`tensor` becomes what all processes' tensors are reduced to."""
    target = Target(tensor, filled=True)
    array = target.array
    kind = native(tensor.dtype, op)
    small = array.nbytes <= _SMALL * max(1, channel.size // 8) or tensor.dtype in ONLY_NATIVE
    if channel.size == 1:
        pass                                    # a group of one has no communicator
    elif kind is not None and small:
        from mpi4py import MPI
        if array.size:
            yield channel.comm.Iallreduce(MPI.IN_PLACE, [array, kind[0]], kind[1])
    else:
        yield from _reduce_parts(channel, array, tensor, op)
    target.keep()
    if op == "AVG":
        divide(tensor, channel.size)


def _reduce_parts(channel: Channel, array: np.ndarray, like: Tensor, op: str) -> Requests:
    n, rank, count = channel.size, channel.rank, array.size
    bounds = [count * i // n for i in range(n + 1)]
    longest = max(1, (count + n - 1) // n)
    length = min(max(1, _BLOCK // array.itemsize), longest)
    room = np.empty((n, length), array.dtype)
    gathering: list[Any] = []

    def block(part: int, k: int) -> np.ndarray:
        start = min(bounds[part] + k * length, bounds[part + 1])
        return array[start:min(start + length, bounds[part + 1])]
    for k in range((longest + length - 1) // length):
        mine = block(rank, k)
        parts = [mine if i == rank else room[i, :mine.size] for i in range(n)]
        requests = [r for o in channel.others for r in channel.receive(parts[o], o)]
        requests += [r for o in channel.others for r in channel.send(block(o, k), o)]
        yield from requests
        if mine.size:
            tensors = [as_tensor(part, like) for part in parts]
            reduce_into(tensors[rank], tensors, op)
        gathering += [r for o in channel.others for r in channel.receive(block(o, k), o)]
        gathering += [r for o in channel.others for r in channel.send(mine, o)]
    yield from gathering


def broadcast(channel: Channel, tensor: Tensor, root: int) -> Requests:
    """`tensor` becomes that of the root."""
    if channel.rank == root:
        array = values(tensor)
    else:
        target = Target(tensor)
        array = target.array
    if channel.size > 1 and array.size:
        yield channel.comm.Ibcast(as_bytes(array), root)
    if channel.rank != root:
        target.keep()


def reduce(channel: Channel, tensor: Tensor, op: str, root: int) -> Requests:
    """The root's `tensor` becomes what all are reduced to."""
    if channel.rank != root:
        yield from channel.send(values(tensor), root)
        return
    target = Target(tensor, filled=True)
    room = [target.array if i == root else np.empty_like(target.array)
            for i in range(channel.size)]
    yield from [r for o in channel.others for r in channel.receive(room[o], o)]
    if channel.size > 1 and target.array.size:
        parts = [as_tensor(part, tensor) for part in room]
        reduce_into(parts[root], parts, op)
    target.keep()
    if op == "AVG":
        divide(tensor, channel.size)


def exchange(channel: Channel, outputs: list[Tensor], inputs: list[Tensor]) -> Requests:
    """Entry i of the inputs goes to process i, entry i of the outputs comes from there."""
    targets = [Target(output) for output in outputs]
    requests = [r for o in channel.others for r in channel.receive(targets[o].array, o)]
    known: dict[int, np.ndarray] = {}
    for o in channel.others:
        tensor = inputs[o]
        if id(tensor) not in known:
            known[id(tensor)] = values(tensor)
        requests += channel.send(known[id(tensor)], o)
    mine = values(inputs[channel.rank])
    if mine.size and not np.shares_memory(mine, targets[channel.rank].array):
        targets[channel.rank].array[:] = mine
    yield from requests
    for target in targets:
        target.keep()


def all_gather_into(channel: Channel, output: Tensor, tensor: Tensor) -> Requests:
    """`output` becomes all processes' tensors, one after the other."""
    if memory(output) is None:
        room = flambeau.empty(output.numel(), dtype=output.dtype)
        yield from all_gather_into(channel, room, tensor)
        with flambeau.no_grad():
            output.copy_(room.view(output.shape))
        return
    rows = output.detach().view(-1).chunk(channel.size) if output.numel() else ()
    if rows:
        yield from exchange(channel, list(rows), [tensor] * channel.size)


def gather(channel: Channel, outputs: list[Tensor], tensor: Tensor, root: int) -> Requests:
    """The root's outputs become all processes' tensors."""
    if channel.rank != root:
        yield from channel.send(values(tensor), root)
        return
    targets = [Target(output) for output in outputs]
    requests = [r for o in channel.others for r in channel.receive(targets[o].array, o)]
    targets[root].array[:] = values(tensor)
    yield from requests
    for target in targets:
        target.keep()


def scatter(channel: Channel, output: Tensor, parts: list[Tensor], root: int) -> Requests:
    """`output` of process i becomes entry i of the root's parts."""
    target = Target(output)
    if channel.rank == root:
        requests = [r for o in channel.others for r in channel.send(values(parts[o]), o)]
        target.array[:] = values(parts[root])
        yield from requests
    else:
        yield from channel.receive(target.array, root)
    target.keep()


def reduce_scatter(channel: Channel, output: Tensor, parts: list[Tensor], op: str) -> Requests:
    """`output` of process i becomes what all entries i are reduced to."""
    target = Target(output)
    mine = values(parts[channel.rank])
    room = [mine if i == channel.rank else np.empty_like(mine) for i in range(channel.size)]
    yield from ([r for o in channel.others for r in channel.receive(room[o], o)]
                + [r for o in channel.others for r in channel.send(values(parts[o]), o)])
    if mine.size:
        reduce_into(as_tensor(target.array, output), [as_tensor(p, output) for p in room], op)
    target.keep()
    if op == "AVG":
        divide(output, channel.size)
