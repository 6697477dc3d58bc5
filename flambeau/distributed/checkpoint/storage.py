"""Where checkpoints are kept: what writes and reads them there."""
from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from flambeau.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from flambeau.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from flambeau.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What has been written: which value, how many bytes, and where."""
    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes what plans say. All processes have one; that of the coordinator sees all plans, and
    ends the work."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin another checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Called before anything is planned."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan of this process, as the storage wants it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The plans of all, as the storage wants them; at the coordinator."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what the plan of this process says."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the description; with it the checkpoint is there. At the coordinator."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can checkpoints of that name be here?"""

    def storage_meta(self) -> StorageMeta | None:
        """Which checkpoint this is."""
        return None


class StorageReader(abc.ABC):
    """Reads what plans say. All processes have one; that of the coordinator sees all plans."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin with another checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The description of what is there."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:
        """Called before anything is planned."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan of this process, as the storage wants it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all, as the storage wants them; at the coordinator."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan of this process says."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can checkpoints of that name be here?"""
