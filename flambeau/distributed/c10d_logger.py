"""The logger of process groups, and decorators by which functions report to it."""
from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import flambeau.distributed as dist
from flambeau.distributed.logging_handlers import _log_handlers

__all__: list[str] = []

_DEFAULT_DESTINATION = "default"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _make_logger(title: str, handler: logging.Handler, name: str) -> logging.Logger:
    """The logger of that title whose records go to `handler` alone."""
    logger = logging.getLogger(f"{title}-{name}")
    logger.setLevel(logging.DEBUG)
    handler.setFormatter(logging.Formatter(
        "%(asctime)s %(filename)s:%(lineno)s %(levelname)s p:%(processName)s t:%(threadName)s: "
        "%(message)s"))
    logger.propagate = False
    logger.addHandler(handler)
    return logger


def _described_handler(handlers: dict[str, logging.Handler], destination: str
                       ) -> tuple[logging.Handler, str]:
    return handlers[destination], f"{type(handlers[destination]).__name__}-{destination}"


def _get_or_create_logger(destination: str = _DEFAULT_DESTINATION) -> logging.Logger:
    return _make_logger("c10d", *_get_logging_handler(destination))


def _get_logging_handler(destination: str = _DEFAULT_DESTINATION
                         ) -> tuple[logging.Handler, str]:
    return _described_handler(_log_handlers, destination)


_c10d_logger = _get_or_create_logger()


def _get_msg_dict(func_name: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What is logged of a call: its name, and the process and the group that make it."""
    if not dist.is_initialized():
        return {"func_name": func_name}
    group = kwargs.get("group") or kwargs.get("process_group")
    return {"func_name": func_name, "pg_name": dist._get_process_group_name(kwargs.get("pg")),
            "backend": f"{dist.get_backend(group)}", "world_size": f"{dist.get_world_size()}",
            "group_size": f"{dist.get_world_size(group)}", "global_rank": f"{dist.get_rank()}",
            "local_rank": f"{dist.get_rank(group)}"}


def _exception_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """A decorator: what a function raises is logged, and raised."""
    @functools.wraps(func)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            _c10d_logger.debug(_get_msg_dict(func.__name__, *args, **kwargs)
                               | {"error": f"{error}"})
            raise
    return wrapper


def _time_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """A decorator: the time that a function takes is an event of profiles."""
    @functools.wraps(func)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        from flambeau.autograd.profiler import record_function, recorders
        if not recorders:
            return func(*args, **kwargs)
        with record_function(f"pytorch.wait_counter.c10d.{func.__name__}"):
            return func(*args, **kwargs)
    return wrapper
