"""The profiler: which ops ran, how long, on what shapes, inside what.

While a profile is entered, a `Level` sees every op of its threads, and composites around them;
outside, nothing is there to cost anything.

>>> import flambeau
>>> x = flambeau.ones(3, requires_grad=True)
>>> with profile() as prof:
...     with record_function("my block"):
...         y = (x * 2).sum()
...     y.backward()
>>> [e.name for e in prof.function_events][:3]
['my block', 'aten::mul', 'aten::sum']
"""
from __future__ import annotations

import functools
import os
import re
import sys
import threading
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any, Literal

import flambeau
from flambeau._support.c_functions import matched
from flambeau._support.own_methods import belong, define_in_subclasses
from flambeau._support.scopes import Scope
from flambeau.autograd._profiler_steps import EnforceUnique, KinetoStepTracker
from flambeau.autograd._profiler_trace import count_flops, write_trace
from flambeau.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
)
from flambeau.core import modes
from flambeau.core.autograd import engine, recording
from flambeau.core.modes import Level
from flambeau.core.tensor import Tensor

recorders: list[Recorder] = []          # the active ones
_open: ContextVar[tuple[Raw, ...]] = ContextVar("profiler_open", default=())
ATEN_NAMES = {"_bernoulli_sample": "bernoulli"}
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class Raw:
    """An event while it is recorded."""

    __slots__ = ("asynchronous", "end", "flops", "forward_thread", "inputs", "memory", "name",
                 "sequence", "stack", "start", "thread", "user")

    def __init__(self, name: str, thread: int, inputs: Any = None, user: bool = False):
        self.name, self.thread, self.inputs, self.user = name, thread, inputs, user
        self.sequence, self.forward_thread, self.memory, self.flops = -1, 0, 0, 0
        self.stack: Any = None
        self.asynchronous = False
        self.end: int | None = None
        self.start = perf_counter_ns()


class Recorder(Level):
    """Collects events until it is stopped."""

    observes = True                     # composites are shown to it, and nothing else changes

    def __init__(self, shapes: bool = False, memory: bool = False, stacks: bool = False,
                 flops: bool = False):
        self.shapes, self.memory, self.stacks, self.flops = shapes, memory, stacks, flops
        self.events: list[Raw] = []
        self.threads: dict[int, int] = {}
        self.forward_threads: dict[int, int] = {}

    # ---- start and stop -------------------------------------------------------------------------

    def start(self) -> None:
        self.__enter__()

    def _changes(self) -> Any:
        self._anomaly = modes.anomaly.enabled, modes.anomaly.run
        self._accumulate = engine.accumulate_into
        self.origin = perf_counter_ns()
        anomaly = vars(modes.anomaly)
        return (*super()._changes(), (anomaly, "enabled", True), (anomaly, "run", self._run_node),
                (vars(engine), "accumulate_into", self._run_leaf),
                (recording.node_watchers, self._see_node), (recorders, self))

    def stop(self) -> None:
        if self not in recorders:                   # has been stopped
            return
        self.ended = perf_counter_ns()
        self.__exit__(None, None, None)

    # ---- what happens ---------------------------------------------------------------------------

    def begin(self, name: str, inputs: Any = None, user: bool = False) -> Raw:
        thread = threading.get_ident()
        number = self.threads.setdefault(thread, len(self.threads) + 1)
        event = Raw(name, number, _shapes(inputs) if self.shapes and inputs else None, user)
        if self.stacks:
            event.stack = _stack()
        self.events.append(event)
        _open.set((*_open.get(), event))
        event.start = perf_counter_ns()
        return event

    def begin_async(self, name: str, inputs: Any) -> Raw:
        """An event that may end in another thread, and that contains no others."""
        event = Raw(name, self.threads.setdefault(threading.get_ident(), len(self.threads) + 1),
                    _shapes(inputs) if self.shapes else None)
        event.asynchronous = True
        self.events.append(event)
        return event

    def end(self, event: Raw) -> None:
        if event.end is None:
            event.end = perf_counter_ns()
        _open.set(tuple(e for e in _open.get() if e is not event))

    def __call__(self, op: Any, canonical: tuple[Any, ...]) -> Any:
        name, enclosing = op_name(op), _open.get()
        inside = bool(enclosing) and enclosing[-1].name == name     # a public function's only op
        event = enclosing[-1] if inside else self.begin(name, canonical)
        try:
            result = op.call(*canonical)
        finally:
            if not inside:
                self.end(event)
        if self.flops:
            event.flops = count_flops(name, canonical, result)
        if self.memory and not op.inplace and not op.view:
            self._allocated(event, result)
        return result

    def composite(self, op: Any, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function made of other ops: `run(*args, **kwargs)`, as one event."""
        event = self.begin(op_name(op), (*args, *kwargs.values()))
        try:
            result = run(*args, **kwargs)
        finally:
            self.end(event)
        if self.flops and not event.flops:
            event.flops = count_flops(event.name, (*args, *kwargs.values()), result)
        return result

    def _allocated(self, event: Raw, result: Any) -> None:
        parts = result if isinstance(result, (tuple, list)) else (result,)
        size = sum(t.numel() * t.element_size() for t in parts if isinstance(t, Tensor))
        for enclosing in {event, *_open.get()}:
            enclosing.memory += size

    def _see_node(self, node: Any) -> None:
        """A node was recorded: the innermost event is its forward op, or composites around it."""
        for event in reversed(_open.get()):
            if event.user or event.sequence >= 0:
                break
            event.sequence = node._sequence_nr()
            self.forward_threads[node.order] = event.thread

    def _run_node(self, node: Any, grad: Any) -> Any:
        """A node runs in backward."""
        enabled, run = self._anomaly
        name = node.name().removeprefix("torch.autograd.")
        events = []
        for text in (f"autograd::engine::evaluate_function: {name}", name):
            event = self.begin(text, grad if type(grad) is list else (grad,))
            event.sequence = node._sequence_nr()
            event.forward_thread = self.forward_threads.get(node.order, 0)
            events.append(event)
        try:
            return run(node, grad) if enabled else engine.apply_node(node, grad)
        finally:
            for event in reversed(events):
                self.end(event)

    def _run_leaf(self, leaf: Tensor, grad: Tensor, create_graph: bool, stolen: int) -> None:
        """A gradient is added to that of a leaf; this call is one more that holds it."""
        name = "torch::autograd::AccumulateGrad"
        outer = self.begin(f"autograd::engine::evaluate_function: {name}", (grad,))
        event = self.begin(name, (grad,))
        try:
            self._accumulate(leaf, grad, create_graph, stolen and stolen + 1)
        finally:
            self.end(event)
            self.end(outer)

    # ---- what it was ----------------------------------------------------------------------------

    def function_events(self) -> list[FunctionEvent]:
        found = []
        for number, raw in enumerate(self.events, 1):
            end = self.ended if raw.end is None else raw.end
            found.append(FunctionEvent(
                id=number, name=raw.name, thread=raw.thread, start_us=self._us(raw.start),
                end_us=self._us(end), fwd_thread=raw.forward_thread, input_shapes=raw.inputs or [],
                stack=raw.stack or [], cpu_memory_usage=raw.memory, sequence_nr=raw.sequence,
                flops=raw.flops, is_user_annotation=raw.user, is_async=raw.asynchronous))
        return found

    def _us(self, stamp: int) -> float:
        return (stamp - self.origin) / 1000


@functools.cache
def op_name(op: Any) -> str:
    """The name under which users know an op; what only we call goes by the name of its nodes."""
    name = ATEN_NAMES.get(op.name)
    if name is None:
        name, base = op.name, op.functional or op
        declared = base.declaration
        inner = declared is not None and not (declared.function or declared.method)
        if name[0] == "_" or (inner and not hasattr(Tensor, op.name)):
            node = getattr(base, "Backward", None)
            words = re.sub(r"Backward\d+$", "", name if node is None else node.__name__)
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower() + "_" * op.inplace
    return f"aten::{name}"


def _shapes(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(list(value.shape))
        elif isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor):
            found.append([list(v.shape) for v in value if isinstance(v, Tensor)])
        else:
            found.append([])
    return found


def _stack() -> list[str]:
    """The frames of the user's code, innermost first."""
    frame: Any = sys._getframe(2)
    found = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


# ---- what users see ------------------------------------


class profile(Scope):
    """Records what runs inside the block; results are there when it has ended.

    `record_shapes` keeps the shapes of inputs, `profile_memory` the sizes of results, `with_stack`
    the lines of code. The arguments that speak of devices have no effect.
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: Any = None,
                 record_shapes: bool = False, with_flops: bool = False,
                 profile_memory: bool = False, with_stack: bool = False,
                 with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
                 experimental_config: Any = None, acc_events: bool = False,
                 custom_trace_id_callback: Any = None,
                 post_processing_timeout_s: float | None = None, activity_filters: Any = None):
        self.enabled, self.acc_events, self.use_device = enabled, acc_events, use_device
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.entered = False
        self._events: EventList | None = None
        self._recorder: Recorder | None = None
        self._metadata: dict[str, Any] = {}         # what goes into traces besides

    @property
    def _gives(self) -> Any:
        return NotImplemented if self.enabled else None

    def _changes(self) -> Any:
        if not self.enabled:
            return ()
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack,
                                  self.with_flops)
        return self._recorder._changes()

    def _has_left(self) -> None:
        if self._recorder is None:
            return
        self._recorder.ended = perf_counter_ns()
        events = EventList(self._recorder.function_events(), profile_memory=self.profile_memory,
                           with_flops=self.with_flops)
        events._populate_cpu_children()
        if self.acc_events and self._events is not None:
            events[:0] = self._events
        self._events, self._recorder = events, None

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None \
            else repr(self._events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None \
            else str(self._events)

    def table(self, sort_by: str | None = None, row_limit: int = 100,
              max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:
        """The events as a table: see `EventList.table`."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width,
            max_shapes_column_width, header, top_level_events_only)

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None,
                            use_python_export: bool = False) -> None:
        """Write the events as JSON for Perfetto and `chrome://tracing`; packed if for a .gz. The
        trace says `metadata` besides."""
        write_trace(path, self.function_events, {
            "record_shapes": int(self.record_shapes), "profile_memory": int(self.profile_memory),
            "with_stack": int(self.with_stack), "with_flops": int(self.with_flops),
            **self._metadata, **(metadata or {})})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their times, for flame graphs."""
        self.function_events.export_stacks(path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums over the events of one name."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n,
                                                 group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, in microseconds."""
        return self.function_events.self_cpu_time_total

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Raises NotImplementedError: a profile records from its start to its end."""
        raise NotImplementedError("profile.toggle_collection_dynamic")


class record_function:
    """Names a block, or as a decorator a function, in profiles. Without a profile it does nothing.

    >>> @record_function("step")
    ... def step():
    ...     pass
    >>> with profile() as prof:
    ...     step()
    >>> prof.function_events[0].name
    'step'
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._events: list[tuple[Recorder, Raw]] = []
        self._shown: Any = None             # what the op that a mode has seen gave

    def __enter__(self) -> record_function:
        if not (isinstance(self.name, str) and isinstance(self.args, str | None)):
            argument, kind, value = ("name", "str", self.name) if not isinstance(
                self.name, str) else ("args", "Optional[str]", self.args)
            raise RuntimeError("profiler::_record_function_enter_new() Expected a value of type "
                               f"'{kind}' for argument '{argument}' but instead found type "
                               f"'{type(value).__name__}'.")
        if modes.shows_ops():
            given = (self.name,) if self.args is None else (self.name, self.args)
            self._shown = flambeau.ops.profiler._record_function_enter_new.default(*given)
        else:
            self.begin()
        return self

    def begin(self) -> None:
        """Begin the block in each profile."""
        if recorders:
            self._events = [(r, r.begin(self.name, user=True)) for r in recorders]

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self._shown is not None:
            flambeau.ops.profiler._record_function_exit._RecordFunction(self._shown)
            self._shown = None
        self.end()

    def end(self) -> None:
        """End it."""
        for recorder, event in self._events:
            recorder.end(event)
        self._events = []

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return func(*args, **kwargs)
        return wrapped

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        raise NotImplementedError("record_function on futures")


@define_in_subclasses()
class _Ranges:
    """A context that gives ranges to another tool, which is not there."""

    tool = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False

    def __enter__(self) -> _Ranges:
        if self.enabled:
            raise RuntimeError(f"{self.tool} is not available: flambeau runs on the CPU")
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False]:
        return False


class emit_nvtx(_Ranges):
    """Ranges for NVIDIA's tools, which need a GPU: raises unless `enabled` is False."""

    tool = "NVTX"


class emit_itt(_Ranges):
    """Ranges for Intel's tools, which are not there: raises unless `enabled` is False."""

    tool = "ITT"


def load_nvprof(path: str) -> EventList:
    """Not offered: NVIDIA's profiler needs a GPU."""
    raise NotImplementedError("load_nvprof")


parse_nvprof_trace = load_nvprof


def _profiler_enabled() -> bool:
    """Is a profile being recorded?"""
    return bool(recorders)


def _disable_profiler() -> list[FunctionEvent]:
    """End the profile that is being recorded, and give its events."""
    if not recorders:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    recorder = recorders[-1]
    recorder.stop()
    return recorder.function_events()


_disable_profiler_legacy = _disable_profiler


@matched("() -> bool")
def kineto_available() -> bool:
    """True: a profile has all that PyTorch's newer profiler records on a CPU."""
    return True


belong(__name__, EnforceUnique, KinetoStepTracker)

__all__ = ["EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc",
           "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile",
           "record_function"]
