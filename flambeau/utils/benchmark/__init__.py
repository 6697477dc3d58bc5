"""Timing of small pieces of code, with enough repetitions and honest error bars.

>>> timer = Timer("x + x", globals={"x": flambeau.ones(4)}, label="add")
>>> measurement = timer.blocked_autorange(min_run_time=0.001)
>>> measurement.median > 0 and measurement.title
'add'
"""
from __future__ import annotations

import flambeau
from flambeau.utils.benchmark.compare import Compare
from flambeau.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from flambeau.utils.benchmark.timing import Language, Timer, timer

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "timer",
           "trim_sigfig", "unit_to_english"]
