"""A pool of processes that take and give tensors."""
from __future__ import annotations

import gc
import multiprocessing.pool
from typing import Any

from flambeau.multiprocessing.queue import SimpleQueue

__all__ = ["Pool", "clean_worker"]


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """What a process of the pool runs: at its end, tensors that it shares are let go."""
    work: Any = multiprocessing.pool
    work.worker(*args, **kwargs)
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """Python's pool, whose queues know tensors.

    >>> import flambeau
    >>> from flambeau.multiprocessing.pool import Pool
    >>> with Pool(1) as pool:
    ...     pool.apply(flambeau.neg, (flambeau.ones(2),))
    tensor([-1., -1.])
    """

    def _setup_queues(self) -> None:
        own: Any = self
        own._inqueue, own._outqueue = (SimpleQueue(ctx=own._ctx) for _ in range(2))
        own._quick_put, own._quick_get = own._inqueue._writer.send, own._outqueue._reader.recv
