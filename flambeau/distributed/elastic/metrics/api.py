"""Numbers about a running program, sent to a handler that the program chooses.

>>> class Print(MetricHandler):
...     def emit(self, metric_data):
...         print(metric_data.group_name, metric_data.name, metric_data.value)
>>> configure(Print(), group="my_app")
>>> put_metric("latency", 3, "my_app")
my_app latency 3
"""
from __future__ import annotations

import abc
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple


class MetricData(NamedTuple):
    """One number, and when it was taken."""
    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Parameters of handlers."""
    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None):
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Where numbers go."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Take a number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints numbers."""

    def emit(self, metric_data: MetricData) -> None:
        """Print a number."""
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: "
              f"{metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Drops numbers."""

    def emit(self, metric_data: MetricData) -> None:
        """Drop a number."""


class MetricStream:
    """A group of numbers and where they go."""

    def __init__(self, group_name: str, handler: MetricHandler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Send a number."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str, MetricHandler] = {}
_default: MetricHandler = NullMetricHandler()


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Send the numbers of a group, or of all groups without one of their own, to a handler."""
    global _default
    if group is None:
        _default = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:
    """The stream of a group."""
    return MetricStream(group, _handlers.get(group, _default))


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Send a number to the handler of its group."""
    getStream(metric_group).add_value(metric_name, metric_value)


def _get_metric_name(fn: Any) -> str:
    """The name of a method with its class, of a function with its module."""
    name = fn.__qualname__
    return name if "." in name or not fn.__module__ else f"{fn.__module__.split('.')[-1]}.{name}"


def _timed(fn: Callable[..., Any], key: str, put: Callable[[str, int], None]) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        try:
            result = fn(*args, **kwargs)
            put(f"{key}.success", 1)
        except Exception:
            put(f"{key}.failure", 1)
            raise
        finally:
            put(f"{key}.duration.ms", get_elapsed_time_ms(start))
        return result
    return wrapper


def prof(fn: Any = None, group: str = "torchelastic") -> Any:
    """Decorates a function: each call sends its time in milliseconds, and success or failure."""
    if fn is None:
        return functools.partial(prof, group=group)
    return _timed(fn, _get_metric_name(fn), lambda name, value: put_metric(name, value, group))


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Milliseconds since a time that `time.time()` gave."""
    return int((time.time() - start_time_in_seconds) * 1000)


def profile(group: str | None = None) -> Any:
    """`prof` for a named group, under the function's bare name."""
    warnings.warn("Deprecated, use `@prof` instead", FutureWarning, stacklevel=2)
    return lambda fn: _timed(
        fn, fn.__name__, lambda name, value: publish_metric(group, name, value))


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """`put_metric` with the group first."""
    warnings.warn(
        "Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead",
        FutureWarning, stacklevel=2)
    put_metric(metric_name, metric_value, metric_group)


__all__ = ["ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig",
           "NullMetricHandler", "configure", "getStream", "get_elapsed_time_ms", "prof",
           "profile", "publish_metric", "put_metric"]
