"""`profile`: records what runs in the steps that a schedule names."""
from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.autograd import profiler as _events
from flambeau.autograd.profiler import kineto_available, record_function  # noqa: F401
from flambeau.autograd.profiler_util import DeviceType, EventList  # noqa: F401

PROFILER_STEP_NAME = "ProfilerStep"


class ProfilerActivity(enum.Enum):
    """What to record: only the CPU's activity is there."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Skip `skip_first` steps; then `wait` without recording, `warmup`, record `active` steps; and
    again, `repeat` times (0: until the end). `skip_first_wait` leaves out the first wait.

    >>> [schedule(wait=1, warmup=0, active=2)(i).name for i in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
                             f"warmup={warmup} (need >= 0), active={active} (need > 0), "
                             f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    if not warmup:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results",
                      stacklevel=2)

    def schedule_fn(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE
    return schedule_fn


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Record every step."""
    return ProfilerAction.RECORD


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded."""
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None,
                              use_gzip: bool = False, use_python_export: bool = False
                              ) -> Callable[[Any], None]:
    """An `on_trace_ready` that writes each trace as a JSON file into a folder."""
    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json")
        prof.export_chrome_trace(path + (".gz" if use_gzip else ""))
    return handler


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Records what runs inside the block: all of it, or the steps that `schedule` names.

    Call `step()` after each step; `on_trace_ready(prof)` is called when a cycle of the schedule
    has ended, and at the end.
    """

    def __init__(self, *, activities: Iterable[Any] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None,
                 execution_trace_observer: Any = None, acc_events: bool = False,
                 use_cuda: bool | None = None, custom_trace_id_callback: Any = None,
                 post_processing_timeout_s: float | None = None):
        self.activities = supported_activities() if activities is None else set(activities)
        if not any(isinstance(activity, ProfilerActivity) for activity in self.activities):
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.record_steps, self.acc_events = schedule is not None, acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _events.profile | None = None
        self._step_record: record_function | None = None
        self.preset_metadata: dict[str, Any] = {}

    # ---- steps ------------------------------------

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, in the first step."""
        if self.current_action in _RECORDING:
            self._begin_trace()
        self._begin_step()

    def stop(self) -> None:
        """End."""
        self._end_step()
        if self.current_action in _RECORDING:
            self.stop_trace()
            self._ready()

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (
                before is ProfilerAction.RECORD and self.current_action not in _RECORDING):
            self.stop_trace()
            self._ready()
            if self.current_action in _RECORDING:
                self._begin_trace()
        elif before not in _RECORDING and self.current_action in _RECORDING:
            self._begin_trace()
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps and self.current_action in _RECORDING:
            self._step_record = record_function(f"ProfilerStep#{self.step_num}")
            self._step_record.__enter__()

    def _end_step(self) -> None:
        if self._step_record is not None:
            self._step_record.__exit__(None, None, None)
            self._step_record = None

    def _begin_trace(self) -> None:
        self.prepare_trace()
        self.start_trace()

    def prepare_trace(self) -> None:
        """Make ready to record, so that `start_trace` takes no time."""
        old = self.profiler
        self.profiler = _events.profile(
            acc_events=self.acc_events, record_shapes=self.record_shapes,
            profile_memory=self.profile_memory, with_stack=self.with_stack,
            with_flops=self.with_flops)
        self.profiler._metadata = self.preset_metadata
        if self.acc_events and old is not None:
            self.profiler._events = old._events

    def start_trace(self) -> None:
        """Record from here on."""
        self._finished("starting trace").__enter__()

    def stop_trace(self) -> None:
        """Record no more."""
        self._finished("stopping trace").__exit__(None, None, None)

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Any) -> None:
        """Has no effect: traces carry no ids."""

    # ---- results ------------------------------------

    def _finished(self, what: str) -> _events.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList:
        """The events of the last trace, in the order in which they began."""
        return self._finished("accessing events").function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums over the events of one name."""
        return self._finished("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the events as JSON for `chrome://tracing` and Perfetto; packed if for a .gz."""
        self._finished("exporting chrome trace").export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their times, for flame graphs."""
        self._finished("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text with the trace."""
        self.preset_metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep what a JSON text says with the trace."""
        self.preset_metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Raises NotImplementedError: a profile records from its start to its end."""
        raise NotImplementedError("profile.toggle_collection_dynamic")


_KinetoProfile = profile


class ExecutionTraceObserver:
    """Not offered: `profile` records what runs."""

    def __init__(self) -> None:
        raise NotImplementedError("ExecutionTraceObserver")


__all__ = ["ExecutionTraceObserver", "ProfilerAction", "profile", "schedule",
           "supported_activities", "tensorboard_trace_handler"]
