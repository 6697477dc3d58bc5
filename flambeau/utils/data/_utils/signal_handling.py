"""Signals of worker processes. A worker that dies closes its connection, which the loader notices;
so nothing is installed here, and the ids of workers are only remembered."""
from __future__ import annotations

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


__all__ = ["_remove_worker_pids", "_set_worker_pids", "_set_worker_signal_handlers"]
