"""Signals of worker processes. A worker that dies closes its connection, which the loader notices;
so nothing is installed here, and the ids of workers are only remembered."""
from __future__ import annotations

import os

_pids: dict[int, tuple[int, ...]] = {}


def _set_worker_signal_handlers() -> None:
    """Nothing: the connection to a worker says when it has died."""


def _set_worker_pids(loader_id: int, pids: tuple[int, ...]) -> None:
    """Remember the worker processes of a loader."""
    if loader_id in _pids:
        raise ValueError("_set_worker_pids should be called only once for each "
                         "_BaseDataLoaderIter.")
    _pids[loader_id] = tuple(pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Forget the worker processes of a loader."""
    if loader_id not in _pids:
        raise ValueError("Cannot find worker information for _BaseDataLoaderIter with id "
                         f"{loader_id}")
    del _pids[loader_id]


def _set_SIGCHLD_handler() -> None:
    """Nothing: the connection to a worker says when it has died."""


def _error_if_any_worker_fails() -> None:
    """Raise an error if a worker process has ended with an error."""
    for pids in _pids.values():
        for pid in pids:
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if ended is not None and ended.si_status:
                raise RuntimeError(f"DataLoader worker (pid {pid}) exited unexpectedly with exit "
                                   f"code {ended.si_status}.")


__all__ = ["_error_if_any_worker_fails", "_remove_worker_pids", "_set_SIGCHLD_handler",
           "_set_worker_pids", "_set_worker_signal_handlers"]
