"""Messages between two processes over MPI.

A message begins with what it is: type, shape, and the line that sends it; a small one holds its
elements too, others follow when the receiver is ready for them. So a fast sender waits, and what
does not fit raises.
"""
from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np

from flambeau import Tensor
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.backends.mpi.data import Target, as_bytes, values
from flambeau.distributed._c10d.backends.mpi.progress import Steps, Task, progress
from flambeau.distributed._c10d.refusals import place_in_words
from flambeau.distributed._c10d.transport.connections import Receipt

_HEAD, _INLINE = 256, 4096              # bytes
_SPAN = 1 << 20                         # tags of parts that follow


class _Heard:
    """The request of a process's word that it has been told something."""

    def __init__(self, receipt: Receipt):
        self._receipt = receipt

    def Test(self) -> bool:
        """Is it there?"""
        return self._receipt.done


class _Arrival:
    """The request of a message from anyone, which knows who has sent it."""

    def __init__(self, request: Any, status: Any):
        self._request, self._status = request, status

    def Test(self) -> bool:
        """Is it there?"""
        return self._request.Test(self._status)

    def source(self) -> int:
        """Who has sent it."""
        return self._status.Get_source()


class Messages:
    """The messages of a group; tags of the form 4n+1 are heads, 4n+2 parts that follow."""

    def __init__(self, owner: Any, comm: Any, last_tag: int):
        self._owner, self._comm, self._last_tag = owner, comm, last_tag
        self._count = itertools.count()

    def _tag(self, tag: int) -> int:
        if not 0 <= tag <= (self._last_tag >> 2) - 1:
            raise ValueError(f"tags of messages over MPI are 0 to {(self._last_tag >> 2) - 1}, "
                             f"got {tag}")
        return (tag << 2) + 1

    def send(self, tensors: list[Tensor], to: int, tag: int) -> Task:
        """Send tensors to a member."""
        head_tag = self._tag(tag)

        def steps(task: Task) -> Steps:
            requests: list[Any] = []
            following = []
            for tensor in tensors:
                array = values(tensor).view(np.uint8)
                follows = (next(self._count) % _SPAN << 2) + 2 if array.size > _INLINE else 0
                head = _head(tensor, follows, task.place)
                if follows:
                    following.append(follows)
                    requests.append(self._comm.Isend(as_bytes(head), to, head_tag))
                    requests.append(self._comm.Isend(as_bytes(array), to, follows))
                else:
                    whole = np.concatenate([head, array])
                    requests.append(self._comm.Isend(as_bytes(whole), to, head_tag))
            yield from requests
            for message in following:
                self._owner.check_notices(to, message)
        return self._start("send", steps, tensors, [to])

    def receive(self, tensors: list[Tensor], source: int | None, tag: int) -> Task:
        """Receive tensors from a member, or from anyone."""
        from mpi4py import MPI
        if self._comm is None:
            raise RuntimeError("recv: there is nobody else in a group of one process")
        head_tag = self._tag(tag)
        wanted = MPI.ANY_SOURCE if source is None else source

        def steps(task: Task) -> Steps:
            for tensor in tensors:
                room = np.empty(_HEAD + _INLINE, np.uint8)
                arrival = _Arrival(self._comm.Irecv(as_bytes(room), wanted, head_tag),
                                   MPI.Status())
                yield arrival
                task._source = arrival.source()
                yield from self._take(task, tensor, room)
        return self._start("recv", steps, tensors, None if source is None else [source])

    def _take(self, task: Task, tensor: Tensor, room: np.ndarray) -> Steps:
        """The elements of a message whose head is there."""
        dtype, shape, size, follows, where = pickle.loads(room[:_HEAD].tobytes())
        task.flowing = True
        owner = self._owner
        sender = owner.ranks[task._source]
        misfit = checks.misfit(
            tensor, f"rank {owner.ranks[owner.rank()]}{place_in_words(task.place)}", dtype, shape,
            f"rank {sender}{where}")
        if misfit:
            yield _Heard(owner.peers.report_misfit(sender, owner.group_name, follows, misfit))
            if follows:                 # its sender waits until it is taken
                yield self._comm.Irecv(as_bytes(np.empty(size, np.uint8)), task._source, follows)
            raise RuntimeError(misfit)
        target = Target(tensor)
        if follows:
            yield self._comm.Irecv(as_bytes(target.array.view(np.uint8)), task._source, follows)
        else:
            target.array.view(np.uint8)[:] = room[_HEAD:_HEAD + size]
        target.keep()

    def _start(self, name: str, steps: Any, tensors: list[Tensor], members: list[int] | None
               ) -> Task:
        owner = self._owner
        task = Task(owner, steps, tensors, owner.options._timeout, name)
        if members is not None:
            task.partners = [owner.ranks[member] for member in members]
        progress.submit(task, False, False)
        return task


def _head(tensor: Tensor, follows: int, place: Any) -> np.ndarray:
    where = place_in_words(place)
    size = tensor.numel() * tensor.element_size()
    shape = list(tensor.shape)
    for about in ((shape, where), (shape, where[-80:]), ([tensor.numel()], "")):
        data = pickle.dumps((str(tensor.dtype), about[0], size, follows, about[1]))
        if len(data) <= _HEAD:
            break
    return np.frombuffer(data.ljust(_HEAD, b"\0"), np.uint8)
