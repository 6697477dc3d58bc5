"""`Work`: a collective that has been started."""
from __future__ import annotations

import enum
import threading
from datetime import timedelta
from typing import Any

from flambeau._support.c_functions import bound_in_c
from flambeau.futures import Future


class OpType(enum.IntEnum):
    """The kinds of collectives."""
    (BROADCAST, ALLREDUCE, ALLREDUCE_COALESCED, REDUCE, ALLGATHER, _ALLGATHER_BASE,
     ALLGATHER_COALESCED, GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL_BASE, ALLTOALL, SEND, RECV,
     RECVANYSOURCE, BARRIER, _REDUCE_SCATTER_BASE, COALESCED, _ALLREDUCE_SPARSE, UNKNOWN) = (
        *range(19), 100)


class WorkResult(enum.IntEnum):
    """How a collective has ended."""
    SUCCESS, TIMEOUT, NCCL_ERROR, COMM_ERROR, UNKNOWN = 0, 1, 2, 3, 100


_NO_LIMIT = timedelta(0)
_changing = threading.Lock()            # held while works become done, or futures are made


@bound_in_c
class Work:
    """A collective that has been started: done already, or to be waited for."""

    def __init__(self, tensors: Any = (), done: bool = True, limit: timedelta | None = None,
                 kind: OpType = OpType.UNKNOWN):
        self._tensors, self._limit, self._kind = tensors, limit, kind
        self._done = done
        self._error: BaseException | None = None
        self._source: int | None = None
        self._waiting: threading.Event | None = None        # made by the first who needs them
        self._future: Future | None = None

    def _finish(self, error: BaseException | None) -> None:
        if error is not None:
            error._is_known_to_all = True               # type: ignore[attr-defined]
        with _changing:
            self._error, self._done = error, True
            waiting, future = self._waiting, self._future
        if waiting is not None:
            waiting.set()
        if future is not None:
            self._settle(future)

    def _settle(self, future: Future) -> None:
        if self._error is None:
            future.set_result(self._tensors)
        else:
            future.set_exception(self._error)

    def is_completed(self) -> bool:
        """Is it done?"""
        return self._done

    def is_success(self) -> bool:
        """Is it done, without an error?"""
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        """Why it has failed; None if it has not."""
        return self._error

    def wait(self, timeout: timedelta | None = _NO_LIMIT) -> bool:
        """Wait until it is done; raises what it has failed with."""
        limit = timeout or self._limit
        seconds = limit.total_seconds() if limit else None
        if not self._done and not self._await(seconds):
            raise RuntimeError(f"Timed out waiting {round((seconds or 0) * 1000)}ms for operation "
                               "to complete")
        if self._error is not None:
            raise self._error
        return True

    def _await(self, seconds: float | None) -> bool:
        """Is it done in time?"""
        with _changing:
            if self._done:
                return True
            waiting = self._waiting = self._waiting or threading.Event()
        return waiting.wait(seconds)

    def synchronize(self) -> None:
        """Wait until it is done."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait until it is done: what follows on the CPU needs it."""
        self.wait()

    def result(self) -> Any:
        """The tensors that it wrote."""
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        """Who sent what was received."""
        if self._source is None:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to "
                               "a recv or recv-from-any call.")
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Future:
        """A future of the tensors that it writes."""
        with _changing:
            known, done = self._future, self._done
            future = self._future = known or Future()
        if done and known is None:
            self._settle(future)
        return future

    def get_future_result(self) -> Future:
        """A future of how it ends, a `WorkResult`."""
        return self.get_future().then(lambda done: int(
            WorkResult.SUCCESS if self._error is None else WorkResult.COMM_ERROR))

    def boxed(self) -> Work:
        """Itself: there is nothing to wrap it in."""
        return self

    @staticmethod
    def unbox(work: Work) -> Work:
        """The work that `boxed` gave."""
        return work

    def _get_op_type(self) -> int:
        return int(self._kind)

    def _get_duration(self) -> float:
        raise RuntimeError("This Backend doesn't support getDuration.")


Work.__module__ = "torch.distributed.distributed_c10d"
