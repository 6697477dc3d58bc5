"""Agents: what they do when workers fail, and when machines come and go."""
from __future__ import annotations

import abc
import json
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.distributed.elastic.agent.server.workers import (
    RunResult,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
    _RoleInstanceInfo,
    assign_worker_ranks,
)
from flambeau.distributed.elastic.events import Event, EventMetadataValue, EventSource, record
from flambeau.distributed.elastic.metrics import prof, put_metric
from flambeau.distributed.elastic.multiprocessing import SignalException
from flambeau.distributed.elastic.rendezvous import RendezvousGracefulExitError
from flambeau.distributed.elastic.utils import store as store_util
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup",
           "WorkerSpec", "WorkerState"]

DEFAULT_ROLE = "default"
_TERMINAL_STATE_SYNC_ID = "torchelastic/agent/terminal_state"
_ROLE_INFO_PREFIX = "torchelastic/role_info/"
logger = get_logger(__name__)


def _get_fq_hostname() -> str:
    return socket.getfqdn(socket.gethostname())


class ElasticAgent(abc.ABC):
    """Runs the workers of one machine."""

    @abc.abstractmethod
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Run the workers until they have ended, or failed for good."""

    @abc.abstractmethod
    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """The workers."""


class SimpleElasticAgent(ElasticAgent):
    """An agent with one group of workers. How they are started, stopped and looked at is up to
    the classes that derive from it."""

    def __init__(self, spec: WorkerSpec, exit_barrier_timeout: float = 300,
                 shutdown_timeout: int = 30):
        self._worker_group = WorkerGroup(spec)
        self._remaining_restarts = spec.max_restarts
        self._store: Any = None
        self._exit_barrier_timeout, self._shutdown_timeout = exit_barrier_timeout, shutdown_timeout
        self._total_execution_time = 0

    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """The workers."""
        return self._worker_group

    @abc.abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the workers; gives their ids by local rank."""

    @abc.abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        """Stop the workers."""

    @abc.abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Look at the workers; how it stands with them."""

    @abc.abstractmethod
    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        """End all that was started."""

    # Starting -------------------------------------------------------------------------------

    @prof
    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Meet the other agents; the workers learn who they are."""
        spec = worker_group.spec
        with self.record_duration("RENDEZVOUS"):
            found = spec.rdzv_handler.next_rendezvous()
        place = found.bootstrap_store_info
        self._store = worker_group.store = found.store
        worker_group.group_rank, worker_group.group_world_size = found.rank, found.world_size
        worker_group.master_addr = spec.master_addr or place.master_addr
        worker_group.master_port = spec.master_port or place.master_port
        with self.record_duration("ASSIGN_WORKER_RANKS"):
            worker_group.workers = self._assign_worker_ranks(found.store, found.rank,
                                                             found.world_size, spec)
        workers = worker_group.workers
        logger.info(
            "[%s] Rendezvous complete for workers. Result:\n"
            "  restart_count=%s\n  master_addr=%s\n  master_port=%s\n  group_rank=%s\n"
            "  group_world_size=%s\n  local_ranks=%s\n  role_ranks=%s\n  global_ranks=%s\n"
            "  role_world_sizes=%s\n  global_world_sizes=%s\n  event_log_handler=%s\n",
            spec.role, spec.max_restarts - self._remaining_restarts, worker_group.master_addr,
            worker_group.master_port, found.rank, found.world_size,
            *([getattr(worker, name) for worker in workers] for name in (
                "local_rank", "role_rank", "global_rank", "role_world_size", "world_size")),
            spec.event_log_handler)

    @prof
    def _assign_worker_ranks(self, store: Any, group_rank: int, group_world_size: int,
                             spec: WorkerSpec) -> list[Worker]:
        """Tell the other agents how many workers there are here, and number all of them."""
        mine = _RoleInstanceInfo(spec.role, group_rank, spec.local_world_size)
        store.set(f"{_ROLE_INFO_PREFIX}{group_rank}", mine.serialize())
        found = store.multi_get([f"{_ROLE_INFO_PREFIX}{i}" for i in range(group_world_size)])
        return assign_worker_ranks([_RoleInstanceInfo.deserialize(data) for data in found],
                                   group_rank)

    @prof
    def _initialize_workers(self, worker_group: WorkerGroup) -> None:
        """Meet the other agents, and start the workers."""
        logger.info("[%s] Rendezvous'ing worker group", worker_group.spec.role)
        self._rendezvous(worker_group)
        logger.info("[%s] Starting worker group", worker_group.spec.role)
        with self.record_duration("START_WORKERS"):
            ids = self._start_workers(worker_group)
        for worker in worker_group.workers:
            worker.id = ids[worker.local_rank]
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        """Stop all workers, and start them again."""
        logger.info("[%s] Stopping worker group", worker_group.spec.role)
        self._stop_workers(worker_group)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    # Running --------------------------------------------------------------------------------

    @prof
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Run the workers until they have ended, or failed once too often."""
        start, was_shut_down = time.monotonic(), False
        try:
            result = self._invoke_run(role)
            self._total_execution_time = int(time.monotonic() - start)
            self._record_metrics(result)
            self._record_worker_events(result)
            return result
        except RendezvousGracefulExitError as error:
            logger.info("Rendezvous gracefully exited: %s", error)
            return RunResult(state=WorkerState.SUCCEEDED)
        except SignalException as error:
            logger.warning("Received %s death signal, shutting down workers, timeout %s sec",
                           error.sigval, self._shutdown_timeout)
            self._shutdown(error.sigval, timeout=self._shutdown_timeout)
            was_shut_down = True
            raise
        finally:
            if not was_shut_down:
                self._shutdown(timeout=self._shutdown_timeout)
            self._total_execution_time = int(time.monotonic() - start)

    def _invoke_run(self, role: str = DEFAULT_ROLE) -> RunResult:
        group = self._worker_group
        spec = group.spec
        logger.info("[%s] starting workers for entrypoint: %s", spec.role,
                    spec.get_entrypoint_name())
        self._initialize_workers(group)
        while True:
            time.sleep(spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{spec.role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{spec.role}.{result.state.name.lower()}", 1)
            if result.state == WorkerState.SUCCEEDED:
                logger.info("[%s] worker group successfully finished. Waiting %s seconds for "
                            "other agents to finish.", spec.role, self._exit_barrier_timeout)
                self._exit_barrier()
                return result
            if result.state in {WorkerState.UNHEALTHY, WorkerState.FAILED}:
                if not self._remaining_restarts:
                    self._stop_workers(group)
                    group.state = WorkerState.FAILED
                    return result
                logger.info("[%s] Worker group %s. %s/%s attempts left; will restart worker "
                            "group", spec.role, result.state.name, self._remaining_restarts,
                            spec.max_restarts)
                self._remaining_restarts -= 1
                self._restart_workers(group)
            elif result.state == WorkerState.HEALTHY:
                waiting = spec.rdzv_handler.num_nodes_waiting()
                if waiting > 0:
                    logger.info("[%s] Detected %s new nodes from group_rank=%s; will restart "
                                "worker group", spec.role, waiting, group.group_rank)
                    self._restart_workers(group)
            else:
                raise Exception(f"[{spec.role}] Worker group in {result.state.name} state")

    def _exit_barrier(self) -> None:
        """Wait until the workers of all agents have ended: the store may live in this one."""
        logger.info("Local worker group finished (%s). Waiting %s seconds for other agents to "
                    "finish", self._worker_group.state, self._exit_barrier_timeout)
        start = time.time()
        try:
            store_util.barrier(self._store, self._worker_group.group_world_size,
                               key_prefix=_TERMINAL_STATE_SYNC_ID,
                               barrier_timeout=self._exit_barrier_timeout)
            logger.info("Done waiting for other agents. Elapsed: %s seconds", time.time() - start)
        except SignalException as error:
            logger.warning("Got termination signal: %s", error.sigval)
            raise
        except Exception:
            logger.exception("Error waiting on exit barrier. Elapsed: %s seconds",
                             time.time() - start)

    # Telling --------------------------------------------------------------------------------

    def get_event_failed(self) -> Event:
        """The event that this agent has failed."""
        return self._construct_event("FAILED", EventSource.AGENT,
                                     raw_error=traceback.format_exc())

    def get_event_succeeded(self) -> Event:
        """The event that this agent has ended well."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    def _record_worker_events(self, result: RunResult) -> None:
        for worker in self._worker_group.workers:
            failure = result.failures.get(worker.global_rank)
            state = self._get_worker_state(worker, result)
            event = self._construct_event(
                state, EventSource.WORKER, worker,
                json.dumps(failure.error_file_data) if failure else None,
                exit_code=failure.exitcode if failure else None,
                worker_pid=failure.pid if failure else None)
            record(event, self._worker_group.spec.event_log_handler)

    def _get_worker_state(self, worker: Worker, result: RunResult) -> str:
        failure = result.failures.get(worker.global_rank)
        if result.state in {WorkerState.UNHEALTHY, WorkerState.FAILED} and not failure:
            return "TERMINATED"         # by the agent, since another has failed
        if failure or worker.global_rank in result.return_values:
            return result.state.value
        raise ValueError(f"Unknown worker: {worker.global_rank}")

    @contextmanager
    def record_duration(self, state: str) -> Iterator[None]:
        """Write an event that tells how long what is inside took."""
        start = time.perf_counter()
        try:
            yield
        finally:
            record(self._construct_event(
                state, EventSource.AGENT, duration_ms=(time.perf_counter() - start) * 1000),
                self._worker_group.spec.event_log_handler)

    def _construct_event(self, state: str, source: EventSource, worker: Worker | None = None,
                         raw_error: str | None = None, duration_ms: float | None = None,
                         exit_code: int | None = None, worker_pid: int | None = None) -> Event:
        group = self._worker_group
        spec = group.spec
        about: dict[str, Any] = {"group_world_size": group.group_world_size,
                                 "entry_point": spec.get_entrypoint_name()}
        if worker:
            # each in a list, which is how those who read such events have always got them
            about |= {"local_rank": [worker.local_rank], "role_rank": [worker.role_rank],
                      "role_world_size": [worker.role_world_size], "exit_code": [exit_code],
                      "worker_pid": [worker_pid]}
        metadata: dict[str, EventMetadataValue] = {
            "run_id": spec.rdzv_handler.get_run_id(),
            "global_rank": worker.global_rank if worker else None,
            "group_rank": group.group_rank, "worker_id": str(worker.id) if worker else None,
            "role": spec.role, "hostname": _get_fq_hostname(), "state": state,
            "total_run_time": self._total_execution_time,
            "rdzv_backend": spec.rdzv_handler.get_backend(), "raw_error": raw_error,
            "metadata": json.dumps(about),
            "agent_restarts": spec.max_restarts - self._remaining_restarts,
            "duration_ms": duration_ms}
        return Event(f"torchelastic.worker.status.{state}", source=source, metadata=metadata)

    def _record_metrics(self, group_results: RunResult) -> None:
        is_failed = group_results.is_failed()
        self._record_flakiness_metric(is_failed)
        spec = self._worker_group.spec
        restarted = self._remaining_restarts != spec.max_restarts
        put_metric(f"workers.{spec.role}.run_total", 1)
        for name, condition in (
                ("run_success_with_retries", not is_failed and restarted),
                ("run_success_no_retries", not is_failed and not restarted),
                ("run_failed_with_retries", is_failed and restarted),
                ("run_failed_no_retries", is_failed and not restarted)):
            self._record_metric_with_condition(name, condition)

    def _record_metric_with_condition(self, metric_name: str, condition: bool) -> None:
        put_metric(f"workers.{self._worker_group.spec.role}.{metric_name}", int(condition))

    def _record_flakiness_metric(self, is_failed: bool = False) -> None:
        """100 for a run that failed, else the percentage of restarts that were needed."""
        spec = self._worker_group.spec
        used = 100.0 if is_failed else 100.0 - 100.0 * (self._remaining_restarts + 1) / (
            spec.max_restarts + 1)
        put_metric(f"workers.{spec.role}.flakiness", int(used))
