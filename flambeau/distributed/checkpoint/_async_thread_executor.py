"""Checkpoints that a thread writes."""
from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint._async_executor import _AsyncCheckpointExecutor, staged
from flambeau.distributed.checkpoint.planner import SavePlanner
from flambeau.distributed.checkpoint.storage import StorageWriter

_own_groups: dict[int, Any] = {}        # by the default group


def _own_group() -> Any:
    """A group of all processes for checkpoints alone: collectives of the program, which go on in
    the meantime, would come between those of another group."""
    world = dist.group.WORLD
    if id(world) not in _own_groups:
        _own_groups.clear()
        _own_groups[id(world)] = dist.new_group(backend="gloo", group_desc="async_save")
    return _own_groups[id(world)]


def save_wrapper(staging_future_or_state_dict: dict[str, Any] | Future[dict[str, Any]], *,
                 checkpoint_id: str | os.PathLike | None = None,
                 storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
                 process_group: Any = None, no_dist: bool = False,
                 use_collectives: bool = True) -> Any:
    """`save` of a state that may be copied still."""
    from flambeau.distributed.checkpoint.state_dict_saver import save
    return save(staged(staging_future_or_state_dict), checkpoint_id=checkpoint_id,
                storage_writer=storage_writer, planner=planner, process_group=process_group,
                no_dist=no_dist, use_collectives=use_collectives)


class _ThreadBasedAsyncCheckpointExecutor(_AsyncCheckpointExecutor):
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1)

    def execute_save(self, staging_future_or_state_dict: dict[str, Any] | Future[dict[str, Any]],
                     *, checkpoint_id: str | os.PathLike | None = None,
                     storage_writer: StorageWriter | None = None,
                     planner: SavePlanner | None = None, process_group: Any = None,
                     no_dist: bool = False, use_collectives: bool = True) -> Future[Any]:
        """Write a state in a thread. Without a group the processes make one for that."""
        if process_group is None and not no_dist and dist.is_initialized() \
                and dist.get_world_size() > 1:
            process_group = _own_group()
        found = self._executor.submit(
            save_wrapper, staging_future_or_state_dict, checkpoint_id=checkpoint_id,
            storage_writer=storage_writer, planner=planner, process_group=process_group,
            no_dist=no_dist, use_collectives=use_collectives)
        self._executor.shutdown(wait=False)
        return found
