"""Starting the workers of one machine, and watching them.

>>> from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
>>> context = start_processes(name="echo", entrypoint="true", args={0: (), 1: ()},
...                           envs={0: {}, 1: {}}, logs_specs=DefaultLogsSpecs())
>>> context.wait(period=0.05).is_failed()
False
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    ProcessFailure,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    _validate_full_rank,
    to_map,
)
from flambeau.distributed.elastic.utils.logging import get_logger
from flambeau.numa.binding import NumaOptions

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext",
           "ProcessFailure", "RunProcsResult", "SignalException", "Std", "SubprocessContext",
           "start_processes", "to_map"]


def start_processes(name: str, entrypoint: Callable[..., Any] | str,
                    args: dict[int, tuple[Any, ...]], envs: dict[int, dict[str, str]],
                    logs_specs: LogsSpecs, log_line_prefixes: dict[int, str] | None = None,
                    start_method: str = "spawn", numa_options: NumaOptions | None = None,
                    duplicate_stdout_filters: list[str] | None = None,
                    duplicate_stderr_filters: list[str] | None = None) -> PContext:
    """Start one process for each local rank: a function, or a program if `entrypoint` is a string.

    Args:
        name: the prefix of lines that are shown, before the local rank.
        args: arguments, by local rank.
        envs: variables of the environment, by local rank, besides the ones of this process.
        logs_specs: where outputs go.
        log_line_prefixes: prefixes by local rank, instead of `name`.
        start_method: "spawn", "fork" or "forkserver", for functions.
        numa_options: binds the processes to processors.
        duplicate_stdout_filters: lines that contain one of these go to a file, too.
        duplicate_stderr_filters: the same for stderr.
    """
    _validate_full_rank(args, len(args), "args")
    _validate_full_rank(envs, len(args), "envs")
    common = {"name": name, "args": args, "envs": envs, "logs_specs": logs_specs,
              "log_line_prefixes": log_line_prefixes, "numa_options": numa_options,
              "duplicate_stdout_filters": duplicate_stdout_filters,
              "duplicate_stderr_filters": duplicate_stderr_filters}
    context: PContext = (
        SubprocessContext(entrypoint=entrypoint, **common)          # type: ignore[arg-type]
        if isinstance(entrypoint, str) else
        MultiprocessContext(entrypoint=entrypoint, start_method=start_method,
                            **common))                              # type: ignore[arg-type]
    try:
        context.start()
    except Exception:
        context.close()
        raise
    return context
