"""`save` and `async_save`: a planner, a storage, and the steps between them."""
from __future__ import annotations

import os
import warnings
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint._async_executor import _AsyncCheckpointExecutor
from flambeau.distributed.checkpoint._storage_utils import _storage_setup
from flambeau.distributed.checkpoint.default_planner import DefaultSavePlanner
from flambeau.distributed.checkpoint.metadata import Metadata
from flambeau.distributed.checkpoint.planner import SavePlan, SavePlanner
from flambeau.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
from flambeau.distributed.checkpoint.stateful import Stateful
from flambeau.distributed.checkpoint.storage import StorageWriter, WriteResult
from flambeau.distributed.checkpoint.utils import (
    _api_bc_check,
    _DistWrapper,
    _profile,
    tell_more,
)

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """What writes while the program goes on."""
    THREAD = "thread"
    PROCESS = "process"


def save_state_dict(state_dict: dict[str, Any], storage_writer: StorageWriter,
                    process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:
    """The older form of `save`."""
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions.Please "
                  "use `save` instead.", FutureWarning, stacklevel=2)
    storage_writer.reset()
    with _profile():
        return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank,
                                no_dist, planner)


@_api_bc_check
def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
         storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
         process_group: Any = None, no_dist: bool = False,
         use_collectives: bool = True) -> Metadata:
    """Write a state, each process what it has of it; gives the description of what is there.

    `checkpoint_id` is a folder, or what `storage_writer` takes it for. Objects that are
    `Stateful` are written as what their `state_dict` gives. All processes of the group call this;
    with `no_dist` one alone writes.

    >>> import tempfile
    >>> sorted(save({"w": flambeau.ones(2), "step": 3},
    ...             checkpoint_id=tempfile.mkdtemp()).state_dict_metadata)
    ['step', 'w']
    """
    no_dist = no_dist or not dist.is_initialized()
    with _profile():
        writer = cast(StorageWriter, _storage_setup(storage_writer, checkpoint_id, reader=False))
        return _save_state_dict(_stateful_to_state_dict(state_dict), writer, process_group,
                                no_dist=no_dist, planner=planner,
                                use_collectives=use_collectives)


@dataclass
class AsyncSaveResponse:
    """When the state has been copied, and when it has been written."""
    staging_completion: Future[None]
    upload_completion: Future[None]


def async_save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None,
               storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
               process_group: Any = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
               async_stager: AsyncStager | None = None, no_dist: bool = False,
               use_collectives: bool = True) -> Future[Any] | AsyncSaveResponse:
    """`save` while the program goes on: the state is copied, and a thread, or a process of its
    own, writes the copy.

    Gives a future of what `save` gives; with an `async_stager` that copies in the background an
    `AsyncSaveResponse`.
    """
    writer = cast(StorageWriter, _storage_setup(storage_writer, checkpoint_id, reader=False))
    state_dict = _stateful_to_state_dict(state_dict)
    if async_stager is None:
        async_stager = writer if isinstance(writer, AsyncStager) \
            else DefaultStager(StagingOptions(False, False, False, False))
    staged = async_stager.stage(state_dict)
    upload = _executor(async_checkpointer_type).execute_save(
        staged, checkpoint_id=checkpoint_id, storage_writer=writer, planner=planner,
        process_group=process_group, no_dist=no_dist, use_collectives=use_collectives)
    if not isinstance(staged, Future):
        if async_stager.should_synchronize_after_execute:
            async_stager.synchronize_staging()
        return upload
    copied: Future[None] = Future()

    def finish(done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            copied.set_result(None)
        else:
            copied.set_exception(error)
    staged.add_done_callback(finish)
    return AsyncSaveResponse(staging_completion=copied, upload_completion=cast(Any, upload))


def _executor(kind: AsyncCheckpointerType) -> _AsyncCheckpointExecutor:
    if kind is AsyncCheckpointerType.PROCESS:
        from flambeau.distributed.checkpoint._async_process_executor import (
            _ProcessBasedAsyncCheckpointExecutor,
        )
        return _ProcessBasedAsyncCheckpointExecutor()
    from flambeau.distributed.checkpoint._async_thread_executor import (
        _ThreadBasedAsyncCheckpointExecutor,
    )
    return _ThreadBasedAsyncCheckpointExecutor()


def _stateful_to_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """What objects that have a state are saved as."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value
            for key, value in state_dict.items()}


def _save_state_dict(state_dict: dict[str, Any], storage_writer: StorageWriter,
                     process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                     planner: SavePlanner | None = None,
                     use_collectives: bool = True) -> Metadata:
    together = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultSavePlanner() if planner is None else planner
    about: Metadata | None = None

    def local_step() -> SavePlan:
        storage_meta = storage_writer.storage_meta()
        try:
            planner.set_up_planner(state_dict=state_dict, storage_meta=storage_meta,
                                   is_coordinator=together.is_coordinator)
        except TypeError:           # a planner from before there was `storage_meta`
            planner.set_up_planner(state_dict, together.is_coordinator)  # type: ignore[arg-type]
        tell_more(storage_writer.set_up_storage_writer, together.is_coordinator,
                  rank=together.rank, use_collectives=use_collectives)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def global_step(plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal about
        plans, about = planner.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    def write_data(plan: SavePlan) -> list[WriteResult]:
        writes = storage_writer.write_data(planner.finish_plan(plan), planner)
        writes.wait()
        return writes.value()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        assert about is not None
        storage_writer.finish(metadata=about, results=results)
        return about
    if use_collectives:
        plan = together.reduce_scatter("plan", local_step, global_step)
        return together.all_reduce("write", lambda: write_data(plan), finish)
    plan = global_step([local_step()])[0]
    return finish([write_data(plan)])
