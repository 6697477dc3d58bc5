"""An agent whose workers are processes of this machine."""
from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from collections.abc import Callable
from string import Template
from typing import Any

from flambeau.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from flambeau.distributed.elastic.agent.server.health_check_server import (
    HealthCheckServer,
    create_healthcheck_server,
)
from flambeau.distributed.elastic.events import Event, EventSource, record
from flambeau.distributed.elastic.metrics import prof, put_metric
from flambeau.distributed.elastic.multiprocessing import LogsSpecs, PContext, start_processes
from flambeau.distributed.elastic.multiprocessing.api import signals_held
from flambeau.distributed.elastic.utils import macros
from flambeau.distributed.elastic.utils.logging import get_logger
from flambeau.distributed.elastic.utils.process_state import (
    is_uninterruptible_state,
    read_proc_state,
)

__all__ = ["TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_HEALTH_CHECK_PORT",
           "TORCHELASTIC_TIMER_FILE", "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT",
           "LocalElasticAgent"]

logger = get_logger(__name__)
TORCHELASTIC_ENABLE_FILE_TIMER = "TORCHELASTIC_ENABLE_FILE_TIMER"
TORCHELASTIC_HEALTH_CHECK_PORT = "TORCHELASTIC_HEALTH_CHECK_PORT"
TORCHELASTIC_TIMER_FILE = "TORCHELASTIC_TIMER_FILE"
TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"


def _resolve_uninterruptible_state_timeout(explicit: float | None) -> float:
    """Seconds, from the argument or the environment; 0 if there is no limit."""
    try:
        found = float(os.environ.get(TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, "0")
                      if explicit is None else explicit)
    except ValueError:
        logger.warning("%s is not a number", TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT)
        return 0.0
    return max(0.0, found)


class _AliveCallbackProxy:
    """When the agent last made progress, for a server that is made before the agent is."""

    def __init__(self) -> None:
        self._delegate: Callable[[], int] = lambda: int(time.time())

    def __call__(self) -> int:
        return self._delegate()

    def set_delegate(self, delegate: Callable[[], int]) -> None:
        """Ask this one from now on."""
        self._delegate = delegate


class LocalElasticAgent(SimpleElasticAgent):
    """Runs functions or programs as processes of this machine.

    Args:
        spec: what to run.
        logs_specs: where outputs go.
        start_method: "spawn", "fork" or "forkserver", for functions.
        exit_barrier_timeout: seconds that the agent waits at the end for the others.
        log_line_prefix_template: the prefix of lines that are shown, in which `${role_name}`,
            `${rank}` and `${local_rank}` are replaced.
        shutdown_timeout: seconds that workers have to end when they are told to.
        health_check_server: tells others that the agent is alive.
        uninterruptible_state_timeout: seconds after which a worker that hangs in the kernel has
            failed; 0 waits.
    """

    def __init__(self, spec: WorkerSpec, logs_specs: LogsSpecs, start_method: str = "spawn",
                 exit_barrier_timeout: float = 300, log_line_prefix_template: str | None = None,
                 shutdown_timeout: int = 30, health_check_server: HealthCheckServer | None = None,
                 uninterruptible_state_timeout: float | None = None):
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        self._start_method, self._logs_specs = start_method, logs_specs
        self._log_line_prefix_template = log_line_prefix_template
        self._health_check_server = health_check_server
        self._uninterruptible_state_timeout = _resolve_uninterruptible_state_timeout(
            uninterruptible_state_timeout)
        self._stuck_since: dict[int, float] = {}        # by process id
        self._rdzv_handler = spec.rdzv_handler
        self._pcontext: PContext | None = None
        self._worker_watchdog: Any = None
        self._begun = time.time()

    # Helpers of programs --------------------------------------------------------------------

    def _setup_local_watchdog(self, envs: dict[int, dict[str, str]]) -> None:
        """A server for timers that workers set themselves, if the environment asks for it."""
        if os.environ.get(TORCHELASTIC_ENABLE_FILE_TIMER) != "1":
            return
        from flambeau.distributed.elastic import timer
        path = os.environ.get(TORCHELASTIC_TIMER_FILE) or f"/tmp/watchdog_timer_{uuid.uuid4()}"
        logger.info("Starting a FileTimerServer with %s ...", path)
        if self._worker_watchdog is None:
            self._worker_watchdog = timer.FileTimerServer(
                file_path=path, run_id=self._worker_group.spec.rdzv_handler.get_run_id(),
                max_interval=0.1, daemon=True, log_event=self._log_watchdog_event)
            self._worker_watchdog.start()
        for env in envs.values():
            env[TORCHELASTIC_TIMER_FILE] = self._worker_watchdog._file_path

    @staticmethod
    def _get_current_time_secs() -> int:
        return int(time.time())

    def _get_alive_time(self) -> int:
        watchdog = self._worker_watchdog
        return self._get_current_time_secs() if watchdog is None else \
            int(watchdog.get_last_progress_time())

    def _setup_healthcheck(self) -> None:
        if self._health_check_server is not None:
            if isinstance(self._health_check_server.alive_callback, _AliveCallbackProxy):
                self._health_check_server.alive_callback.set_delegate(self._get_alive_time)
            return
        port = os.environ.get(TORCHELASTIC_HEALTH_CHECK_PORT)
        if port is not None:
            self._health_check_server = create_healthcheck_server(
                alive_callback=self._get_alive_time, port=int(port), timeout=60)
            self._health_check_server.start()

    def _get_fq_hostname(self) -> str:
        return socket.getfqdn(socket.gethostname())

    def _log_watchdog_event(self, name: str, request: Any) -> None:
        group = self._worker_group
        about: dict[str, Any] = {
            "run_id": group.spec.rdzv_handler.get_run_id(), "global_rank": None,
            "group_rank": group.group_rank, "worker_id": None, "role": group.spec.role,
            "hostname": self._get_fq_hostname(), "state": "RUNNING",
            "total_run_time": self._total_execution_time,
            "rdzv_backend": group.spec.rdzv_handler.get_backend(), "raw_error": None,
            "metadata": {}, "agent_restarts": group.spec.max_restarts - self._remaining_restarts}
        if request is not None:
            about |= {"worker_pid": request.worker_pid, "scope_id": request.scope_id,
                      "expiration_time": request.expiration_time, "signal": request.signal}
        record(Event(name=f"watchdog.{name}", source=EventSource.AGENT, metadata=about),
               group.spec.event_log_handler)

    # Workers --------------------------------------------------------------------------------

    @prof
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(timeout=self._shutdown_timeout)

    @prof
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        assert spec.entrypoint is not None and worker_group.store is not None
        args, envs, prefixes = {}, {}, {}
        for worker in worker_group.workers:
            rank = worker.local_rank
            envs[rank] = self._worker_env(worker_group, worker)
            if self._log_line_prefix_template:
                prefixes[rank] = Template(self._log_line_prefix_template).safe_substitute(
                    role_name=spec.role, rank=worker.global_rank, local_rank=rank)
            args[rank] = tuple(macros.substitute(list(spec.args), str(rank)))
        self._setup_local_watchdog(envs)
        self._setup_healthcheck()
        self._stuck_since.clear()
        with signals_held():            # a worker that was started unknown would outlive us
            self._pcontext = start_processes(
                name=spec.role, entrypoint=spec.entrypoint, args=args, envs=envs,
                logs_specs=self._logs_specs, log_line_prefixes=prefixes or None,
                start_method=self._start_method, numa_options=spec.numa_options,
                duplicate_stdout_filters=spec.duplicate_stdout_filters,
                duplicate_stderr_filters=spec.duplicate_stderr_filters)
        return self._pcontext.pids()

    def _worker_env(self, group: WorkerGroup, worker: Any) -> dict[str, str]:
        spec = group.spec
        env: dict[str, Any] = {
            "RANK": worker.global_rank, "GROUP_RANK": group.group_rank,
            "ROLE_RANK": worker.role_rank, "ROLE_NAME": spec.role,
            "LOCAL_WORLD_SIZE": spec.local_world_size, "WORLD_SIZE": worker.world_size,
            "GROUP_WORLD_SIZE": group.group_world_size,
            "ROLE_WORLD_SIZE": worker.role_world_size, "MASTER_ADDR": group.master_addr,
            "MASTER_PORT": group.master_port,
            "TORCHELASTIC_RESTART_COUNT": spec.max_restarts - self._remaining_restarts,
            "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
            "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
            "TORCHELASTIC_USE_AGENT_STORE": spec.rdzv_handler.use_agent_store,
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                                              "1")}
        self._set_local_rank_env(env, worker.local_rank, spec)
        if "OMP_NUM_THREADS" in os.environ:
            env["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        return {name: str(value) for name, value in env.items()}

    def _set_local_rank_env(self, worker_env: dict[str, Any], local_rank: int, spec: WorkerSpec
                            ) -> None:
        """The local rank; if it is virtual, 0 and a list of GPUs that has only the worker's."""
        worker_env["LOCAL_RANK"] = 0 if spec.virtual_local_rank else local_rank
        if spec.virtual_local_rank:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            if visible is not None:
                devices = visible.split(",")
                if local_rank >= len(devices):
                    raise ValueError(f"local_rank {local_rank} exceeds the devices in "
                                     f"CUDA_VISIBLE_DEVICES={visible}")
                worker_env["CUDA_VISIBLE_DEVICES"] = devices[local_rank]
            else:
                worker_env["CUDA_VISIBLE_DEVICES"] = str(local_rank)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        if self._worker_watchdog is not None:
            self._worker_watchdog.stop()
            self._worker_watchdog = None
        if self._health_check_server is not None:
            self._health_check_server.stop()
            self._health_check_server = None
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout)
            from flambeau.distributed._c10d.backends.mpi.library import remove_memory_of_nobody
            remove_memory_of_nobody(self._begun)        # workers may have been ended too early

    @prof
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        role = worker_group.spec.role
        assert self._pcontext is not None
        if {worker.id for worker in worker_group.workers} != set(self._pcontext.pids().values()):
            logger.error("[%s] worker pids do not match process_context pids. Expected: %s, "
                         "actual: %s", role, {worker.id for worker in worker_group.workers},
                         set(self._pcontext.pids().values()))
            return RunResult(state=WorkerState.UNKNOWN)
        result = self._pcontext.wait(0)
        if result is None:
            if self._uninterruptible_state_timeout > 0:
                stuck = self._check_uninterruptible_state_timeout(
                    worker_group, self._uninterruptible_state_timeout)
                if stuck is not None:
                    return stuck
            return RunResult(state=WorkerState.HEALTHY)
        ranks = {worker.local_rank: worker.global_rank for worker in worker_group.workers}
        if result.is_failed():
            return RunResult(state=WorkerState.FAILED, failures={
                ranks[rank]: failure for rank, failure in result.failures.items()})
        return RunResult(state=WorkerState.SUCCEEDED, return_values={
            ranks[rank]: value for rank, value in result.return_values.items()})

    def _check_uninterruptible_state_timeout(self, worker_group: WorkerGroup, timeout: float
                                             ) -> RunResult | None:
        """UNHEALTHY if a worker has been hanging in the kernel for too long."""
        role = worker_group.spec.role
        for worker in worker_group.workers:
            stuck = self._update_uninterruptible_dwell(worker.id, role, timeout)
            if stuck is not None and stuck >= timeout:
                logger.error("[%s] Worker with pid %s has been in uninterruptible state for %s "
                             "seconds", role, worker.id, round(stuck, 1))
                put_metric(f"workers.{role}.uninterruptible_state_timeout", 1)
                return RunResult(state=WorkerState.UNHEALTHY)
        return None

    def _update_uninterruptible_dwell(self, pid: int, role: str, timeout: float) -> float | None:
        """For how many seconds the process has been hanging in the kernel, None if it is not."""
        if not is_uninterruptible_state(read_proc_state(pid)):
            self._stuck_since.pop(pid, None)
            return None
        now = time.monotonic()
        return now - self._stuck_since.setdefault(pid, now)
