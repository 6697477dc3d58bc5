"""Launching an agent from a program."""
from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau._utils_internal import get_default_numa_options
from flambeau.distributed.elastic import events, metrics
from flambeau.distributed.elastic.agent.server.api import WorkerSpec
from flambeau.distributed.elastic.agent.server.health_check_server import HealthCheckServer
from flambeau.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from flambeau.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    LogsSpecs,
    SignalException,
)
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError
from flambeau.distributed.elastic.rendezvous import RendezvousParameters
from flambeau.distributed.elastic.rendezvous import registry as rdzv_registry
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from flambeau.distributed.elastic.utils.logging import get_logger
from flambeau.numa.binding import NumaOptions

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

logger = get_logger(__name__)


@dataclass
class LaunchConfig:
    """How to run a job.

    Args:
        min_nodes: how many machines are enough.
        max_nodes: how many there may be.
        nproc_per_node: workers on each.
        logs_specs: where outputs go.
        run_id: the name of the run, the same on all machines.
        role: the role of the workers.
        rdzv_endpoint: where the agents meet, `host:port`.
        rdzv_backend: how they meet: "c10d" or "static".
        rdzv_configs: options of the backend.
        rdzv_timeout: deprecated, `rdzv_configs["timeout"]`.
        max_restarts: how often the workers are started again after a failure.
        monitor_interval: seconds between looks at them.
        start_method: how processes for functions are started.
        log_line_prefix_template: the prefix of lines that are shown.
        metrics_cfg: parameters of metrics.
        local_addr: the address of this machine.
        event_log_handler: where events are written.
        numa_options: binds workers to processors.
        signals_to_handle: signals that are passed on to the workers.
        duplicate_stdout_filters: lines that contain one of these go to a file, too.
        duplicate_stderr_filters: the same for stderr.
        virtual_local_rank: each worker sees one GPU, and is local rank 0.
        shutdown_timeout: seconds that workers have to end when they are told to.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: NumaOptions | None = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        else:
            self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.numa_options is None:
            self.numa_options = get_default_numa_options()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))


class elastic_launch:
    """Runs a function, or a program, as `config` says; gives what it returned, by rank.

    >>> config = LaunchConfig(1, 1, 1, rdzv_backend="c10d", rdzv_endpoint="localhost:0",
    ...                       run_id="example", start_method="fork")
    >>> elastic_launch(config, pow)(2, 5)                                     # doctest: +SKIP
    {0: 32}
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None,
                 health_check_server: HealthCheckServer | None = None):
        self._config, self._entrypoint = config, entrypoint
        self._health_check_server = health_check_server

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args),
                            self._health_check_server)


def _get_entrypoint_name(entrypoint: Callable[..., Any] | str | None, args: list[Any]) -> str:
    """The name of what runs: for Python, the first argument that is no option."""
    if not isinstance(entrypoint, str):
        return "" if entrypoint is None else entrypoint.__qualname__
    if entrypoint == sys.executable:
        return next((arg for arg in args if arg[0] != "-"), "")
    return entrypoint


def _get_addr_and_port(rdzv_parameters: RendezvousParameters) -> tuple[str | None, int | None]:
    """Where rank 0's store is, if that is known beforehand."""
    if rdzv_parameters.backend != "static":
        return None, None
    endpoint = rdzv_parameters.endpoint.strip()
    if not endpoint:
        raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and "
                         "--master-port")
    addr, port = parse_rendezvous_endpoint(endpoint, default_port=-1)
    if port == -1:
        raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
    return addr, port


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None,
                 args: list[Any], health_check_server: HealthCheckServer | None = None
                 ) -> dict[int, Any]:
    """Run an agent until its workers have ended: what they returned, by rank.

    Raises:
        ChildFailedError: workers have failed once too often.
    """
    if not config.run_id:
        config.run_id = str(uuid.uuid4().int)
        logger.warning("config has no run_id, generated a random run_id: %s", config.run_id)
    name = _get_entrypoint_name(entrypoint, args)
    parameters = RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, config.run_id, config.min_nodes,
        config.max_nodes, config.local_addr, **config.rdzv_configs)
    master_addr, master_port = _get_addr_and_port(parameters)
    # the workers see it, and so does what starts them
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle
    spec = WorkerSpec(
        role=config.role, local_world_size=config.nproc_per_node, entrypoint=entrypoint,
        args=tuple(args), rdzv_handler=rdzv_registry.get_rendezvous_handler(parameters),
        max_restarts=config.max_restarts, monitor_interval=config.monitor_interval,
        master_addr=master_addr, master_port=master_port, local_addr=config.local_addr,
        event_log_handler=config.event_log_handler, numa_options=config.numa_options,
        duplicate_stdout_filters=config.duplicate_stdout_filters,
        duplicate_stderr_filters=config.duplicate_stderr_filters,
        virtual_local_rank=config.virtual_local_rank)
    agent = LocalElasticAgent(
        spec=spec, logs_specs=config.logs_specs, start_method=config.start_method,
        log_line_prefix_template=config.log_line_prefix_template,
        shutdown_timeout=config.shutdown_timeout, health_check_server=health_check_server)
    return _run(agent, config, name)


def _run(agent: LocalElasticAgent, config: LaunchConfig, name: str) -> dict[int, Any]:
    spec, shut_down = agent.get_worker_group().spec, True
    try:
        metrics.initialize_metrics(metrics.MetricsConfig(config.metrics_cfg))
        result = agent.run()
        events.record(agent.get_event_succeeded(), config.event_log_handler)
        if result.is_failed():
            # the error file of the worker that failed first becomes that of this process
            raise ChildFailedError(name=name, failures=result.failures)
        return result.return_values
    except ChildFailedError:
        raise
    except SignalException:
        # other agents may go on: a signal to this one does not close the rendezvous
        shut_down = False
        if isinstance(spec.rdzv_handler, DynamicRendezvousHandler):
            spec.rdzv_handler.leave()
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    except Exception:
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    finally:
        if shut_down:
            spec.rdzv_handler.shutdown()
