"""What agents tell each other through a store."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_NUM_MEMBERS, _LAST_MEMBER_CHECKIN = "/num_members", "/last_member"
_TRACE, _TRACING_GATE, _MAX_TRACE_MISSING_RANKS = "/TRACE", "/TRACING_GATE", 16


@contextlib.contextmanager
def store_timeout(store: Any, timeout: float) -> Iterator[None]:
    """Inside, the store waits that many seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Any, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """The values `{prefix}0`, `{prefix}1`, … of all ranks, once all are there.

    Rank 0, which may hold the store, returns when all others have read.
    """
    values = store.multi_get([f"{prefix}{i}" for i in range(world_size)])
    done = _barrier_nonblocking(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.get(done)
    return values


def synchronize(store: Any, data: bytes, rank: int, world_size: int, key_prefix: str,
                timeout: float = 300) -> list[bytes]:
    """Give one's data, and get those of all ranks.

    >>> synchronize(flambeau.distributed.HashStore(), b"mine", 0, 1, "names")
    [b'mine']
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(store: Any, world_size: int, key_prefix: str, barrier_timeout: float = 300,
            rank: int | None = None, rank_tracing_decoder: Callable[[int], str] | None = None,
            trace_timeout: float = 10) -> None:
    """Wait until `world_size` processes have come here. With `rank`, rank 0 names those that are
    missing after `barrier_timeout` seconds, and the others wait `trace_timeout` more for that."""
    if rank is None:
        if rank_tracing_decoder is not None:
            raise AssertionError("Tracing requires rank information")
        with store_timeout(store, barrier_timeout):
            store.get(_barrier_nonblocking(store, world_size, key_prefix))
        return
    with store_timeout(store, barrier_timeout):
        last = _barrier_nonblocking(store, world_size, key_prefix)
        store.set(f"{key_prefix}{rank}{_TRACE}", "<val_ignored>")
        try:
            store.get(last)
            return
        except DistStoreError as error:
            missing = _find_missing(store, rank, world_size, key_prefix, rank_tracing_decoder,
                                    trace_timeout)
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} "
                f"(world_size={world_size}, missing_ranks={missing}, "
                f"timeout={barrier_timeout})") from error


def _find_missing(store: Any, rank: int, world_size: int, key_prefix: str,
                  decoder: Callable[[int], str] | None, seconds: float) -> str | None:
    """The ranks that have not come, which rank 0 looks for while the others wait."""
    gate = f"{key_prefix}{_TRACING_GATE}"
    if rank != 0:
        with store_timeout(store, seconds), contextlib.suppress(DistStoreError):
            store.get(gate)
            return f"[[<check rank 0 ({decoder(0) if decoder else '0'}) for missing rank info>]]"
        return None
    missing = [i for i in range(1, world_size) if not store.check([f"{key_prefix}{i}{_TRACE}"])]
    store.set(gate, "<val_ignored>")
    names = [decoder(i) if decoder else str(i) for i in missing[:_MAX_TRACE_MISSING_RANKS]]
    return f"[{', '.join(names)}]"


def _barrier_nonblocking(store: Any, world_size: int, key_prefix: str) -> str:
    """Tell that this process has come; gives the key that the last one sets."""
    last = key_prefix + _LAST_MEMBER_CHECKIN
    if store.add(key_prefix + _NUM_MEMBERS, 1) == world_size:
        store.set(last, "<val_ignored>")
    return last
