"""Checkpoints that a process beside each process of the program writes.

These processes have a group of their own. They are started by the first save, and serve the later
ones.
"""
from __future__ import annotations

import multiprocessing
import os
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from uuid import uuid4

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.checkpoint._async_executor import _AsyncCheckpointExecutor, staged
from flambeau.distributed.checkpoint.metadata import Metadata
from flambeau.distributed.checkpoint.planner import SavePlanner
from flambeau.distributed.checkpoint.storage import StorageWriter
from flambeau.distributed.checkpoint.utils import _DistWrapper
from flambeau.distributed.elastic.utils.distributed import get_free_port

_STARTING = 120.0                       # seconds for a process to start and meet the others


class _CheckpointSaveProcessControlOpts(Enum):
    INIT_COMPLETE = "init_complete"
    TERMINATE = "terminate"


@dataclass(init=False, unsafe_hash=True)
class _CheckpointRequestIdentifier:
    """A save, which two saves into one place tell apart."""

    checkpoint_id: str | os.PathLike | None
    uuid: str

    def __init__(self, checkpoint_id: str | os.PathLike | None):
        self.checkpoint_id, self.uuid = checkpoint_id, str(uuid4())


@dataclass
class _AsyncCheckpointRequest:
    """What the process is asked to write."""

    staged_state_dict: dict[str, Any]
    checkpoint_request_id: _CheckpointRequestIdentifier
    storage_writer: StorageWriter | None = None
    planner: SavePlanner | None = None
    no_dist: bool = False
    use_collectives: bool = True


@dataclass(init=False)
class _ProcessGroupInitInfo:
    """Where the processes meet. All processes of the group make this together."""

    local_rank: int
    global_rank: int
    world_size: int
    tcp_store_master_addr: str = field(default="")
    tcp_store_master_port: int = field(default=0)

    def __init__(self, process_group: Any = None):
        self.local_rank = dist.get_node_local_rank(fallback_rank=0)
        self.global_rank = dist.get_rank(process_group)
        self.world_size = dist.get_world_size(process_group)
        if self.world_size == 1:
            place = ("localhost", get_free_port())
        else:
            place = _DistWrapper(process_group, True, 0).broadcast(
                "master_addr_and_port", lambda: (socket.getfqdn(), get_free_port()))
        self.tcp_store_master_addr, self.tcp_store_master_port = place


class _AsyncCheckpointProcess:
    """The process that writes for this one."""

    def __init__(self, pg_init_info: _ProcessGroupInitInfo):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._save_process = context.Process(target=self._checkpointing_subprocess,
                                             args=(pg_init_info, theirs), daemon=True)
        self._save_process.start()
        theirs.close()
        if self._wait_for_response(_STARTING) is not \
                _CheckpointSaveProcessControlOpts.INIT_COMPLETE:
            raise RuntimeError("The process that writes checkpoints has not started")

    def _send(self, data: Any) -> None:
        self._connection.send(data)

    def _wait_for_response(self, timeout: float | None = None) -> Any:
        """What the process says; raises what it has failed with."""
        if not self._connection.poll(timeout):
            raise RuntimeError("The process that writes checkpoints does not answer within "
                               f"{timeout} seconds")
        try:
            found = self._connection.recv()
        except EOFError:
            self._save_process.join(5)
            raise RuntimeError("The process that writes checkpoints has ended with exit code "
                               f"{self._save_process.exitcode}") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def is_alive(self) -> bool:
        """Does the process run?"""
        return self._save_process.is_alive()

    def save(self, staged_state_dict: dict[str, Any], *,
             checkpoint_id: str | os.PathLike | None = None,
             storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
             no_dist: bool = False, use_collectives: bool = True) -> Metadata:
        """Let the process write a state; the metadata."""
        self._send(_AsyncCheckpointRequest(
            staged_state_dict, _CheckpointRequestIdentifier(checkpoint_id), storage_writer,
            planner, no_dist, use_collectives))
        return self._wait_for_response()

    def close(self) -> None:
        """End the process."""
        if self.is_alive():
            self._send(_CheckpointSaveProcessControlOpts.TERMINATE)
            self._save_process.join(10)
        self._connection.close()

    @staticmethod
    def _execute_save(state_dict: dict[str, Any], *,
                      checkpoint_request_id: _CheckpointRequestIdentifier,
                      storage_writer: StorageWriter | None = None,
                      planner: SavePlanner | None = None, no_dist: bool = False,
                      use_collectives: bool = True) -> Metadata:
        from flambeau.distributed.checkpoint.state_dict_saver import save
        return save(state_dict, checkpoint_id=checkpoint_request_id.checkpoint_id,
                    storage_writer=storage_writer, planner=planner, no_dist=no_dist,
                    use_collectives=use_collectives)

    @staticmethod
    def _checkpointing_subprocess(pg_init_info: _ProcessGroupInitInfo, parent_conn: Any) -> None:
        """The program of the process: it writes what it is asked to until its end."""
        try:
            dist.init_process_group(
                "gloo", init_method=f"tcp://{pg_init_info.tcp_store_master_addr}:"
                f"{pg_init_info.tcp_store_master_port}", rank=pg_init_info.global_rank,
                world_size=pg_init_info.world_size)
            parent_conn.send(_CheckpointSaveProcessControlOpts.INIT_COMPLETE)
            while isinstance(request := parent_conn.recv(), _AsyncCheckpointRequest):
                parent_conn.send(_answer(request))
        except (EOFError, OSError):             # the program has ended
            pass
        except BaseException as error:
            parent_conn.send(error)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


def _answer(request: _AsyncCheckpointRequest) -> Any:
    """The metadata of what was written, or why it could not be."""
    try:
        return _AsyncCheckpointProcess._execute_save(
            request.staged_state_dict, checkpoint_request_id=request.checkpoint_request_id,
            storage_writer=request.storage_writer, planner=request.planner,
            no_dist=request.no_dist, use_collectives=request.use_collectives)
    except BaseException as error:
        return error


_CHECKPOINT_PROCESS: _AsyncCheckpointProcess | None = None


class _ProcessBasedAsyncCheckpointExecutor(_AsyncCheckpointExecutor):
    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1)

    @staticmethod
    def _execute_save_impl(*, pg_init_info: _ProcessGroupInitInfo | None,
                           staging_future_or_state_dict: Any,
                           checkpoint_id: str | os.PathLike | None = None,
                           storage_writer: StorageWriter | None = None,
                           planner: SavePlanner | None = None, no_dist: bool = False,
                           use_collectives: bool = True) -> Metadata:
        global _CHECKPOINT_PROCESS
        if _CHECKPOINT_PROCESS is None:
            assert pg_init_info is not None
            _CHECKPOINT_PROCESS = _AsyncCheckpointProcess(pg_init_info)
        return _CHECKPOINT_PROCESS.save(
            staged(staging_future_or_state_dict), checkpoint_id=checkpoint_id,
            storage_writer=storage_writer, planner=planner, no_dist=no_dist,
            use_collectives=use_collectives)

    def execute_save(self, staging_future_or_state_dict: dict[str, Any] | Future[dict[str, Any]],
                     *, checkpoint_id: str | os.PathLike | None = None,
                     storage_writer: StorageWriter | None = None,
                     planner: SavePlanner | None = None, process_group: Any = None,
                     no_dist: bool = False, use_collectives: bool = True) -> Future[Any]:
        """Write a state in a process of its own."""
        global _CHECKPOINT_PROCESS
        if _CHECKPOINT_PROCESS is not None and not _CHECKPOINT_PROCESS.is_alive():
            _CHECKPOINT_PROCESS = None
        info = _ProcessGroupInitInfo(process_group) if _CHECKPOINT_PROCESS is None else None
        found = self._executor.submit(
            self._execute_save_impl, pg_init_info=info,
            staging_future_or_state_dict=staging_future_or_state_dict,
            checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner,
            no_dist=no_dist, use_collectives=use_collectives)
        self._executor.shutdown(wait=False)
        return found
