"""What was measured, and how far to trust it."""
from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np

from flambeau._support.lazy.modules import stand_in

MAX_SIGNIFICANT_FIGURES = 4
WIDE, VERY_WIDE = 0.1, 0.25         # interquartile range, relative to the median


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was run: the statement, and the names that tables show it under."""
    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the label below it."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return (f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n"
                f"{textwrap.indent(self.stmt, '  ')}")

    def setup_str(self) -> str:
        """The setup as reports show it."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, a line each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(textwrap.indent(part, "  ") if "\n" in part else part
                         for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of several runs of one task, each of `number_per_run` executions.

    >>> task = TaskSpec("x + y", "")
    >>> m = Measurement(10, [0.010, 0.011, 0.012, 0.010, 0.013], task)
    >>> m                                           # doctest: +ELLIPSIS
    <torch.utils.benchmark.utils.common.Measurement object at 0x...>
    x + y
      Median: 1.10 ms
      IQR:    0.20 ms (1.00 to 1.20)
      5 measurements, 10 runs per measurement, 1 thread
      WARNING: Interquartile range is 18.2% of the median measurement.
               This could indicate system fluctuation.
    """
    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        # what a task is, its measurements are
        if name == "task_spec" or not hasattr(self.task_spec, name):
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds for one execution, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return float(np.mean(self.times))

    @property
    def median(self) -> float:
        """The median of `times`."""
        return float(np.median(self.times))

    @property
    def _quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.times, (25, 75))
        return float(low), float(high)

    @property
    def iqr(self) -> float:
        """The range in which the middle half of `times` lies."""
        low, high = self._quartiles
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the spread allows to state.

        Of n runs the median has the standard error 1.2533 σ / √n, and σ is about IQR / 1.349;
        1.645 standard errors on either side hold it with a confidence of 90 %.
        """
        deviation = self.iqr / 1.349
        if not self.median or not deviation:
            return MAX_SIGNIFICANT_FIGURES
        interval = 1.645 * deviation * 1.2533 / math.sqrt(len(self.times))
        digits = math.floor(math.log10(self.median)) - math.floor(math.log10(interval))
        return max(1, min(digits, MAX_SIGNIFICANT_FIGURES))

    @property
    def has_warnings(self) -> bool:
        """Do the times scatter?"""
        return bool(self._warnings)

    @property
    def _warnings(self) -> str:
        if len(self.times) < 2 or self.meets_confidence():
            return ""
        relative = self.iqr / self.median
        cause = ("suggests significant environmental influence" if relative > VERY_WIDE
                 else "could indicate system fluctuation")
        return (f"  WARNING: Interquartile range is {relative:.1%} of the median measurement.\n"
                f"           This {cause}.")

    def meets_confidence(self, threshold: float = WIDE) -> bool:
        """Is the interquartile range below this part of the median?"""
        return self.iqr / self.median < threshold if self.median else True

    @property
    def title(self) -> str:
        """The title of the task."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment that the task names."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        lines = [f"<torch.utils.benchmark.utils.common.Measurement object at {id(self):#x}>",
                 self.task_spec.summarize()]
        unit, scale = select_unit(self.median)
        several = len(self.times) > 1
        lines.append(f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}")
        if len(self.times) > 2:
            low, high = self._quartiles
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} "
                         f"({low / scale:.2f} to {high / scale:.2f})")
        runs = (f"{self.number_per_run} runs per measurement" if several
                else f"{self.number_per_run} runs")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {len(self.times)} measurement{'s' if several else ''}, {runs}"
                     f"{',' if several else ' ,'} {threads}")
        if several and self.has_warnings and len(self.times) > 2:
            lines.append(self._warnings)
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one, of single executions."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [t for m in group for t in m.times], task)
                for task, group in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is easy to read, and its length in seconds.

    >>> select_unit(0.0025)
    ('ms', 0.001)
    """
    for unit, scale in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)):
        if t < 1000 * scale:
            return unit, scale
    return "s", 1.0


def unit_to_english(u: str) -> str:
    """The name of a unit of time."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` significant figures.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    if x == 0:
        return x
    scale = 10 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)
stand_in("utils.benchmark.utils.common", Measurement, TaskSpec, select_unit, trim_sigfig,
         unit_to_english)
