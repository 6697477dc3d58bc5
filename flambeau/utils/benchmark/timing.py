"""`Timer`: how long a statement takes."""
from __future__ import annotations

import enum
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau._support.lazy.modules import stand_in
from flambeau.utils.benchmark.measurement import Measurement, TaskSpec


def timer() -> float:
    """The time in seconds since some moment, by the most precise clock."""
    return timeit.default_timer()


class Language(enum.Enum):
    """What statements are written in."""
    PYTHON = 0
    CPP = 1


class _Threads:
    """The number of threads that kernels use, inside."""

    def __init__(self, count: int):
        self.count = count

    def __enter__(self) -> None:
        self._outer = flambeau.get_num_threads()
        flambeau.set_num_threads(self.count)

    def __exit__(self, *exception: Any) -> None:
        flambeau.set_num_threads(self._outer)


class Timer:
    """Times a statement, with `num_threads` threads, after a warm-up.

    `label`, `sub_label` and `description` name table, row and column in `Compare`.

    >>> Timer("x.sum()", globals={"x": flambeau.ones(8)}).timeit(10).number_per_run
    10
    """

    _timer_cls = timeit.Timer

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: Language | str = Language.PYTHON):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"Timer: statements in {language}; only Python is offered")
        names = dict(globals or {})
        names.setdefault("torch", flambeau)
        self._globals = names
        self._timer: Any = self._timer_cls(stmt=_dedent(stmt), setup=_dedent(setup), timer=timer,
                                      globals=names)
        self._task_spec = TaskSpec(stmt=_dedent(stmt), setup=_dedent(setup),
                                   global_setup=global_setup, label=label, sub_label=sub_label,
                                   description=description, env=env, num_threads=num_threads)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One run of `number` executions, after a shorter one to warm up."""
        with _Threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
        """Runs of equal length until `min_run_time` seconds are spent, each long enough that
        reading the clock does not count."""
        with _Threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
            return self._measurement(number, times)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01,
                           max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """Runs until the interquartile range is below `threshold` times the median."""
        with _Threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times: list[float] = []
            while sum(times) < max_run_time:
                spent = 0.0
                while spent < min_run_time:
                    times.append(self._time(number))
                    spent += times[-1]
                    if callback is not None:
                        callback(number, times[-1])
                found = self._measurement(number, times)
                if len(times) > 3 and found.meets_confidence(threshold):
                    break
            return self._measurement(number, times)

    def _block_size(self, min_run_time: float) -> int:
        """Executions a run, so that the clock costs less than a thousandth."""
        overhead = np.median([self._empty().timeit(0) for _ in range(5)])
        number = 1
        while True:
            taken = self._time(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _empty(self) -> Any:
        return self._timer_cls("pass", timer=self._timer.timer)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not offered; `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Not offered; `blocked_autorange` finds the number of executions."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, number: int = 100, *, repeats: int | None = None,
                          collect_baseline: bool = True, retain_out_file: bool = False) -> Any:
        """Not offered: it counts instructions with an external program."""
        raise NotImplementedError("Timer.collect_callgrind")


def _dedent(code: str) -> str:
    import textwrap
    lines = textwrap.dedent(code).strip().splitlines()
    return "\n".join(line.rstrip() for line in lines)
stand_in("utils.benchmark.utils.timer", Language, Timer)
