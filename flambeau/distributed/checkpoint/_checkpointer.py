"""`_Checkpointer`: `save`, `async_save` and `load` with the same storage again and again."""
from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from flambeau.distributed.checkpoint import state_dict_loader, state_dict_saver
from flambeau.distributed.checkpoint.metadata import Metadata
from flambeau.distributed.checkpoint.planner import LoadPlanner, SavePlanner
from flambeau.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__: list[str] = []


class _Checkpointer:
    """Saves with a writer, and loads with a reader, in a process group."""

    def __init__(self, storage_writer: StorageWriter, storage_reader: StorageReader, *,
                 process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                 load_planner: LoadPlanner | None = None,
                 save_planner: SavePlanner | None = None):
        self.storage_writer, self.storage_reader = storage_writer, storage_reader
        self.process_group, self.coordinator_rank = process_group, coordinator_rank
        self.no_dist = no_dist
        self.load_planner, self.save_planner = load_planner, save_planner

    def save(self, state_dict: dict[str, Any]) -> Metadata:
        """Write a state."""
        return state_dict_saver.save(state_dict, storage_writer=self.storage_writer,
                                     planner=self.save_planner, process_group=self.process_group,
                                     no_dist=self.no_dist)

    def async_save(self, state_dict: dict[str, Any]) -> Future[Any]:
        """Write a state while the program goes on."""
        found = state_dict_saver.async_save(
            state_dict, storage_writer=self.storage_writer, planner=self.save_planner,
            process_group=self.process_group, no_dist=self.no_dist)
        assert isinstance(found, Future)
        return found

    def load(self, state_dict: dict[str, Any]) -> None:
        """Read a state, in place."""
        state_dict_loader.load(state_dict, storage_reader=self.storage_reader,
                               planner=self.load_planner, process_group=self.process_group,
                               no_dist=self.no_dist)
