"""`ProcessGroupMPI`: collectives carried by MPI, in processes that any launcher has started.

Before data moves, the processes compare what they call (`agreement`), in one small reduction; so a
mismatch raises in all of them. The connections of the TCP transport are the lifeline: over them a
process learns that another has gone, or asks it what it is at when time is up.
"""
from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.backends import agreement
from flambeau.distributed._c10d.backends.agreement import Call
from flambeau.distributed._c10d.backends.backend import Options
from flambeau.distributed._c10d.backends.checked import CheckedBackend
from flambeau.distributed._c10d.backends.gloo import GlooOptions, ProcessGroupGloo, comm_name
from flambeau.distributed._c10d.backends.mpi import moves
from flambeau.distributed._c10d.backends.mpi.library import World
from flambeau.distributed._c10d.backends.mpi.messages import Messages
from flambeau.distributed._c10d.backends.mpi.progress import Owner, Steps, Task, progress
from flambeau.distributed._c10d.refusals import PATIENCE, place_in_words
from flambeau.distributed._c10d.transport.connections import Peers
from flambeau.distributed._c10d.work import Work
from flambeau.distributed.constants import default_pg_timeout

_ANSWER = 0.8                           # seconds for a process to say what it is at
_GRACE = 0.25                           # seconds for what a process has sent before it went


class MPIOptions(Options):
    """How groups on MPI are made: only their timeout matters."""

    def __init__(self, timeout: timedelta = default_pg_timeout):
        super().__init__("mpi", timeout)


class ProcessGroupMPI(CheckedBackend, Owner):
    """Collectives over MPI. `ranks` are the members' numbers in the default group, `places` those
    in the MPI world."""

    Options: Any = MPIOptions
    supports_splitting = True

    def __init__(self, rank: int, size: int, options: MPIOptions, peers: Peers, *, name: str,
                 ranks: list[int], world: World | None, places: list[int],
                 own_peers: bool = False):
        CheckedBackend.__init__(self, rank, size)
        Owner.__init__(self)
        self._options, self.peers, self._own_peers = options, peers, own_peers
        self.group_name, self.ranks = name, ranks
        self._lifeline = ProcessGroupGloo(None, rank, size, GlooOptions(options._timeout),
                                          peers=peers, name=f"{name}:lifeline", ranks=ranks)
        comm = None if world is None or size == 1 else self._communicator(world, places)
        self.channel = moves.Channel(comm, rank, size)
        self._messages = Messages(self, comm, 0 if world is None else world.last_tag)
        self._codes = np.zeros(2, np.int64)
        self._begun = self.finished = 0
        self._now: tuple[int, Call, Any] | None = None
        peers.groups[name] = self

    def _communicator(self, world: World, places: list[int]) -> Any:
        """A communicator of the members, once all of them are there: MPI would wait for ever."""
        self._lifeline.run_barrier(None).wait(self._options._timeout)
        members = world.MPI.COMM_WORLD.Get_group().Incl(places)
        comm = world.MPI.COMM_WORLD.Create_group(
            members, zlib.crc32(self.group_name.encode()) & 0x7FFF)
        members.Free()
        comm.Set_errhandler(world.MPI.ERRORS_RETURN)
        return comm

    def name(self) -> str:
        """mpi"""
        return "mpi"

    # ---- running collectives --------------------------------------------------------------------

    def start(self, call: Call, tensors: Any, move: Callable[[Any], Any], opts: Any) -> Work:
        """Run a collective, after those that were started before."""
        self.begin()
        if self._size == 1:
            for _ in move(None) or ():
                pass
            return Work(tensors)

        def steps(task: Task) -> Steps:
            try:
                yield from self._agree(task, call)
                yield from move(task) or ()
            finally:
                self.finished = task.number
        task = Task(self, steps, tensors, self._timeout_of(opts), call.name)
        name = comm_name.get()
        if name is None:
            progress.submit(task, True, not getattr(opts, "asyncOp", True))
            return task
        with flambeau.autograd.profiler.record_function(name):
            progress.submit(task, True, True)
            task.wait()
        return task

    def _agree(self, task: Task, call: Call) -> Steps:
        """Wait until all processes are here, and make sure that they call the same."""
        from mpi4py import MPI
        self._begun += 1
        number, channel = self._begun, self.channel
        task.number = number
        self._now = (number, call, task.place)
        channel.tag = (number & 0xFFFFF) << 2
        codes = self._codes
        codes[0] = mine = agreement.code(call, number)
        codes[1] = -mine
        yield channel.comm.Iallreduce(MPI.IN_PLACE, [codes, MPI.INT64_T], MPI.MAX)
        task.flowing = True
        if codes[0] != mine or codes[1] != -mine:
            words = agreement.in_words(call, number, task.place)
            longest = np.array([len(words)], np.int64)
            yield channel.comm.Iallreduce(MPI.IN_PLACE, [longest, MPI.INT64_T], MPI.MAX)
            text = np.frombuffer(words.ljust(int(longest[0]), b"\0"), np.uint8)
            room = np.empty((self._size, len(text)), np.uint8)
            yield channel.comm.Iallgather([text, MPI.BYTE], [room, MPI.BYTE])
            found = [row.tobytes() for row in room]
            agreement.check(found, self.ranks)

    def obstacle(self, task: Task) -> tuple[float, str] | None:
        """A member that has refused its call, or gone without having done its part in a task."""
        lost = self._lost(task) if self.peers.gone else []
        reason = self.refusal(task.number)
        if reason:
            return _GRACE if lost else PATIENCE, \
                f"{self.title()}{task.name} does not come about: {reason}"
        if not lost:
            return None
        return _GRACE, (f"Connection closed by peer [rank {lost[0]}]: rank{'s' * (len(lost) > 1)} "
                        f"{', '.join(map(str, lost))} went during {task.name}")

    def _lost(self, task: Task) -> list[int]:
        members = self.ranks if task.partners is None else task.partners
        return [rank for rank in members if rank in self.peers.gone
                and self.peers.left.get(rank, {}).get(self.group_name, -1) < task.number]

    def title(self) -> str:
        """What messages about it begin with."""
        return f"[Rank {self.ranks[self._rank]}] "

    def explain(self, task: Task) -> str:
        """What the others are at, as far as they answer."""
        others = [r for r in (self.ranks if task.partners is None else task.partners)
                  if r != self.ranks[self._rank]]
        answers = self.peers.ask(others[:8], self.group_name, _ANSWER)
        return "".join(f"; {self._told(task, rank, answers.get(rank))}" for rank in others[:8])

    def _told(self, task: Task, rank: int, answer: bytes | None) -> str:
        if answer is None:
            return f"rank {rank} does not answer: it may be stopped"
        number, finished, what = pickle.loads(answer)
        if not number:
            return f"rank {rank} has called no collective of this group"
        return f"rank {rank} {'is in' if number > finished else 'has last called'} {what}"

    def answer(self) -> bytes:
        """What this process is at, for one that asks."""
        if self._now is None:
            return pickle.dumps((0, 0, ""))
        number, call, place = self._now
        return pickle.dumps((number, self.finished, f"{call} #{number}{place_in_words(place)}"))

    # ---- the collectives ------------------------------------------------------------------------

    def move_allreduce(self, task: Task, tensors: list[Tensor], names: list[str], opts: Any
                       ) -> Steps:
        """All processes' tensors reduced, in place."""
        for tensor, name in zip(tensors, names):
            yield from moves.all_reduce(self.channel, tensor, name)

    def move_broadcast(self, task: Task, tensors: list[Tensor], root: int, opts: Any) -> Steps:
        """The tensors of one process for all."""
        for tensor in tensors:
            yield from moves.broadcast(self.channel, tensor, root)

    def move_reduce(self, task: Task, tensors: list[Tensor], names: list[str], root: int,
                    opts: Any) -> Steps:
        """All processes' tensors reduced, for one."""
        for tensor, name in zip(tensors, names):
            yield from moves.reduce(self.channel, tensor, name, root)

    def move_allgather(self, task: Task, outputs: list[list[Tensor]], inputs: list[Tensor],
                       opts: Any) -> Steps:
        """All processes' tensors, for all."""
        for own, tensor in zip(outputs, inputs):
            yield from moves.exchange(self.channel, own, [tensor] * self._size)

    def move_allgather_into_tensor(self, task: Task, outputs: list[Tensor], inputs: list[Tensor],
                                   opts: Any) -> Steps:
        """All processes' tensors one after the other, for all."""
        for output, tensor in zip(outputs, inputs):
            yield from moves.all_gather_into(self.channel, output, tensor)

    def move_gather(self, task: Task, outputs: list[Tensor], tensor: Tensor, root: int, opts: Any
                    ) -> Steps:
        """All processes' tensors, for one."""
        yield from moves.gather(self.channel, outputs, tensor, root)

    def move_scatter(self, task: Task, output: Tensor, parts: list[Tensor], root: int, opts: Any
                     ) -> Steps:
        """A tensor of one process for each."""
        yield from moves.scatter(self.channel, output, parts, root)

    def move_reduce_scatter(self, task: Task, outputs: list[Tensor], inputs: list[list[Tensor]],
                            names: list[str], opts: Any) -> Steps:
        """All entries i of all processes reduced, for process i."""
        for output, parts, name in zip(outputs, inputs, names):
            yield from moves.reduce_scatter(self.channel, output, parts, name)

    def move_alltoall(self, task: Task, outputs: list[Tensor], inputs: list[Tensor], opts: Any
                      ) -> Steps:
        """Entry j of process i's outputs becomes entry i of process j's inputs."""
        if self._size > 1:
            yield from self._compare_parts(outputs, inputs)
        yield from moves.exchange(self.channel, outputs, inputs)

    def _compare_parts(self, outputs: list[Tensor], inputs: list[Tensor]) -> Steps:
        """Raise in all processes if one sends more or less than another expects."""
        from mpi4py import MPI
        comm, n = self.channel.comm, self._size
        sizes = np.array([t.numel() for t in inputs], np.int64)
        come, wanted = np.empty(n, np.int64), np.array([t.numel() for t in outputs], np.int64)
        yield comm.Ialltoall([sizes, MPI.INT64_T], [come, MPI.INT64_T])
        wrong = np.array([-1], np.int64)
        if (come != wanted).any():
            wrong[0] = self._rank
        yield comm.Iallreduce(MPI.IN_PLACE, [wrong, MPI.INT64_T], MPI.MAX)
        if wrong[0] >= 0:
            room = np.array([come, wanted])
            yield comm.Ibcast([room, MPI.INT64_T], int(wrong[0]))
            source = int((room[0] != room[1]).argmax())
            checks.part(int(room[0][source]), self.ranks[source], int(room[1][source]),
                        self.ranks[wrong[0]])

    def move_barrier(self, task: Task, opts: Any) -> None:
        """All processes are here: they have agreed on that."""

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False
                          ) -> None:
        """`barrier` that says who has not come."""
        self._lifeline.monitored_barrier(
            self._options._timeout if timeout is None else timeout, wait_all_ranks)

    # ---- messages -------------------------------------------------------------------------------

    def send(self, tensors: list[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Send tensors to another process."""
        return self.message("send", tensors, lambda: self._messages.send(tensors, dstRank, tag))

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Receive tensors from another process."""
        return self.message("recv", tensors, lambda: self._messages.receive(tensors, srcRank, tag))

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Receive tensors from any process."""
        return self.message("recvAnySource", tensors,
                            lambda: self._messages.receive(tensors, None, tag))

    # ---- life -----------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Forget the group; hang up if the connections are its own."""
        self.warn_of_notices()
        comm, self.channel.comm = self.channel.comm, None
        if comm is not None and self.failed is None and not progress.has_tasks_of(self):
            comm.Free()
        self._lifeline.shutdown()
        if self._own_peers:
            self.peers.close()


ProcessGroupMPI.__module__ = "torch.distributed.distributed_c10d"
