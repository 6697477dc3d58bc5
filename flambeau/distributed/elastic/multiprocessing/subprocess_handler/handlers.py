"""Which handler starts programs."""
from __future__ import annotations

from flambeau.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import (
    SubprocessHandler,
)
from flambeau.numa.binding import NumaOptions

__all__ = ["get_subprocess_handler"]


def get_subprocess_handler(entrypoint: str, args: tuple[str, ...], env: dict[str, str],
                           stdout: str, stderr: str, local_rank_id: int,
                           numa_options: NumaOptions | None = None) -> SubprocessHandler:
    """Start a program as a worker."""
    return SubprocessHandler(entrypoint, args, env, stdout, stderr, local_rank_id, numa_options)
