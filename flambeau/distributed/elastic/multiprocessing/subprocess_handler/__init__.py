"""One worker that is a program of its own."""
from __future__ import annotations

from flambeau.distributed.elastic.multiprocessing.subprocess_handler.handlers import (
    get_subprocess_handler,
)
from flambeau.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import (
    SubprocessHandler,
)

__all__ = ["SubprocessHandler", "get_subprocess_handler"]
