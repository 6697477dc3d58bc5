"""What writes a checkpoint while the program goes on."""
from __future__ import annotations

import abc
import os
from concurrent.futures import Future
from typing import Any

from flambeau.distributed.checkpoint.planner import SavePlanner
from flambeau.distributed.checkpoint.storage import StorageWriter


class _AsyncCheckpointExecutor(abc.ABC):
    @abc.abstractmethod
    def execute_save(self, staging_future_or_state_dict: dict[str, Any] | Future[dict[str, Any]],
                     *, checkpoint_id: str | os.PathLike | None = None,
                     storage_writer: StorageWriter | None = None,
                     planner: SavePlanner | None = None, process_group: Any = None,
                     no_dist: bool = False, use_collectives: bool = True) -> Future[Any]:
        """Write a state, which may be copied still: a future of the metadata."""


def staged(state: dict[str, Any] | Future[dict[str, Any]]) -> dict[str, Any]:
    """The state, as soon as it has been copied."""
    return state.result() if isinstance(state, Future) else state
