"""`ThroughputBenchmark`: how many calls of a module a second several threads make."""
from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple


def format_time(time_us: float | None = None, time_ms: float | None = None,
                time_s: float | None = None) -> str:
    """A time in the unit that suits it.

    >>> format_time(time_us=3000.0)
    '3.000ms'
    """
    if sum(t is not None for t in (time_us, time_ms, time_s)) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    microseconds = time_us
    if time_ms is not None:
        microseconds = time_ms * 1e3
    if time_s is not None:
        microseconds = time_s * 1e6
    assert microseconds is not None
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class _Measured(NamedTuple):
    latency_avg_ms: float
    num_iters: int


class _Asked(NamedTuple):
    num_calling_threads: int


class ExecutionStats:
    """What a benchmark measured."""

    def __init__(self, c_stats: Any, benchmark_config: Any):
        self._c_stats, self.benchmark_config = c_stats, benchmark_config

    @property
    def latency_avg_ms(self) -> float:
        """The time of a call, in milliseconds."""
        return self._c_stats.latency_avg_ms

    @property
    def num_iters(self) -> int:
        """The number of calls."""
        return self._c_stats.num_iters

    @property
    def iters_per_second(self) -> float:
        """The number of calls a second, of all threads together."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self) -> float:
        """The time that all calls took."""
        return self.num_iters * (self.latency_avg_ms / 1000.0) / \
            self.benchmark_config.num_calling_threads

    def __str__(self) -> str:
        return "\n".join([
            f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
            f"Total number of iterations: {self.num_iters}",
            "Total number of iterations per second (across all threads): "
            f"{self.iters_per_second:.2f}",
            f"Total time: {format_time(time_s=self.total_time_seconds)}"])


class ThroughputBenchmark:
    """Calls a module with the inputs that it has been given, one after the other.

    >>> bench = ThroughputBenchmark(nn.ReLU())
    >>> bench.add_input(flambeau.ones(2))
    >>> bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=4).num_iters
    4
    """

    def __init__(self, module: Any):
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Keep the arguments of a call."""
        self._inputs.append((args, kwargs))

    def benchmark(self, num_calling_threads: int = 1, num_warmup_iters: int = 10,
                  num_iters: int = 100, profiler_output_path: str = "") -> ExecutionStats:
        """Measure `num_iters` calls by some threads, after `num_warmup_iters` in each of them."""
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs with add_input().")
        for _ in range(num_warmup_iters):
            for args, kwargs in self._inputs[:1]:
                self.run_once(*args, **kwargs)
        share, more = divmod(num_iters, num_calling_threads)

        def work(place: int) -> None:
            for i in range(share + (place < more)):
                args, kwargs = self._inputs[i % len(self._inputs)]
                self.run_once(*args, **kwargs)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(num_calling_threads)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - start
        latency = seconds * 1e3 * num_calling_threads / max(num_iters, 1)
        return ExecutionStats(_Measured(latency, num_iters), _Asked(num_calling_threads))


__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]
