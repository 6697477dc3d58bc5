"""Checkpoints of folders as single files, and back."""
from __future__ import annotations

import os
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _fill
from flambeau.distributed.checkpoint.metadata import Metadata, TensorProperties
from flambeau.distributed.checkpoint.metadata import TensorStorageMetadata as _TensorMetadata
from flambeau.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from flambeau.distributed.checkpoint.planner_helpers import _create_chunk_list
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict
from flambeau.distributed.checkpoint.state_dict_saver import _save_state_dict
from flambeau.distributed.checkpoint.storage import StorageReader
from flambeau.futures import Future, _completed

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save",
           "torch_save_to_dcp"]

_EmptyStateDictLoadPlanner = _EmptyStateDictLoadPlanner


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of `flambeau.save`, which the coordinator has; the others get it sent.

    The planner has to be a `DynamicMetaLoadPlanner`: such files do not say what is in them.
    """

    def __init__(self, checkpoint_id: str | os.PathLike | None = None, coordinator_rank: int = 0):
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def read_metadata(self) -> Metadata:
        """Nothing is known of what is there."""
        return Metadata(state_dict_metadata={})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the file, send it, and fill the state."""
        planner = _checked(planner)
        state: Any = None
        if self.is_coordinator:
            assert self.checkpoint_id is not None
            state = flambeau.load(self.checkpoint_id, map_location="cpu", weights_only=False)
            if planner.flatten_state_dict:  # type: ignore[attr-defined]
                from flambeau.distributed.checkpoint._nested_dict import flatten_state_dict
                state, _ = flatten_state_dict(state)
        if dist.is_initialized():
            found = [state]
            dist.broadcast_object_list(found, src=self.coordinator_rank)
            state = found[0]
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(f"Non-tensor value identified at {item.storage_index.fqn}. At "
                                   f"this time {type(self).__name__} only supports loading "
                                   "Tensors.")
            _fill(item, planner, state[item.storage_index.fqn], "mismatch sizes,")
        return _completed(None)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool) -> None:
        """Learn of the process."""
        self.is_coordinator = is_coordinator
        assert self.checkpoint_id is not None

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return global_plan

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin with another file."""
        self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Is there a file?"""
        return os.path.isfile(checkpoint_id)


def _checked(planner: Any) -> Any:
    if not isinstance(planner, DefaultLoadPlanner):
        raise TypeError("BroadcastingTorchSaveReader needs a DynamicMetaLoadPlanner, got "
                        f"{type(planner).__name__}")
    return planner


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Takes what is in a checkpoint to be what is in the state: for files of `flambeau.save`."""

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Remember the state to fill."""
        super().set_up_planner(state_dict, metadata, is_coordinator)
        about: dict[str, Any] = {}
        for key, tensor in self.state_dict.items():
            if not isinstance(tensor, Tensor):
                raise RuntimeError(f"Non-tensor value identified at {key}. At this time "
                                   f"{type(self).__name__} only supports loading Tensors.")
            about[key] = _TensorMetadata(TensorProperties(dtype=tensor.dtype), tensor.size(),
                                         _create_chunk_list(tensor.detach())
                                         if type(tensor) is Tensor else _whole(tensor))
        self.metadata = Metadata(about)


def _whole(tensor: Tensor) -> Any:
    from flambeau.distributed.checkpoint.metadata import ChunkStorageMetadata
    return [ChunkStorageMetadata(flambeau.Size([0] * tensor.dim()), tensor.size())]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike,
                      torch_save_path: str | os.PathLike) -> None:
    """Write all that is in a checkpoint's folder into one file of `flambeau.save`."""
    state: dict[str, Any] = {}
    _load_state_dict(state, storage_reader=FileSystemReader(dcp_checkpoint_dir),
                     planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    flambeau.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike,
                      dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write what is in a file of `flambeau.save` as a checkpoint, into a folder."""
    state = flambeau.load(torch_save_path, weights_only=False)
    _save_state_dict(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
