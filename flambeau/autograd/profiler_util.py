"""What a profile has recorded: events, their averages and their tables."""
from __future__ import annotations

import enum
import json
from collections import defaultdict, namedtuple
from collections.abc import Iterable
from typing import Any

from flambeau.autograd._profiler_table import (  # noqa: F401
    _format_memory,
    _format_time,
    _format_time_share,
    build_table,
)


class Interval(namedtuple("Interval", ["start", "end"])):
    """A span of time, in microseconds."""

    __slots__ = ()

    def elapsed_us(self) -> float:
        """How long it took, in microseconds."""
        return self.end - self.start


Kernel = namedtuple("Kernel", ["name", "device", "duration"])
MEMORY_EVENT_NAME = "[memory]"


class DeviceType(enum.Enum):
    """Where something ran."""

    (CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA, Vulkan, Metal, XPU, MPS, Meta,
     HPU, VE, Lazy, IPU, MTIA, PrivateUse1) = range(21)

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class StringTable(defaultdict):
    """Names, each once."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of allocations, to be looked up by time."""

    def __init__(self, mem_records: Iterable[Any]):
        self._records = sorted(mem_records, key=lambda r: r[0])

    def in_interval(self, start_ns: float, end_ns: float) -> Iterable[Any]:
        """The records between two times, with those at either of them."""
        return [r for r in self._records if start_ns <= r[0] <= end_ns]


def _as_text(name: str) -> Any:
    return property(lambda self: _format_time(getattr(self, name)),
                    doc=f"`{name}` with its unit.")


class FormattedTimesMixin:
    """Times as text, and averages over the calls."""

    count: int
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """The average time of a call, in microseconds."""
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The mean time of a call on the device, in microseconds."""
        return 0.0 if self.count == 0 else self.device_time_total / self.count

    cuda_time = device_time

    cpu_time_str, device_time_str, cpu_time_total_str, device_time_total_str, \
        self_cpu_time_total_str, self_device_time_total_str = map(_as_text, (
            "cpu_time", "device_time", "cpu_time_total", "device_time_total",
            "self_cpu_time_total", "self_device_time_total"))


class FunctionEvent(FormattedTimesMixin):
    """One call: of an op, of a node in backward, or of a block that `record_function` names."""

    count = 1
    device_time_total = self_device_time_total = 0.0
    cuda_time_total = self_cuda_time_total = 0.0

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float,
                 overload_name: str | None = None, fwd_thread: int | None = None,
                 input_shapes: Any = None, stack: Any = None, scope: int = 0,
                 use_device: str | None = None, cpu_memory_usage: int = 0,
                 device_memory_usage: int = 0, is_async: bool = False, is_remote: bool = False,
                 sequence_nr: int = -1, node_id: int = -1, device_type: Any = DeviceType.CPU,
                 device_index: int = 0, device_resource_id: int | None = None,
                 is_legacy: bool = False, flops: int | None = None, trace_name: str | None = None,
                 concrete_inputs: Any = None, kwinputs: Any = None,
                 is_user_annotation: bool = False, is_python_function: bool = False,
                 activity_type: str | None = None, metadata_json: str | None = None,
                 flow_id: int | None = None, flow_type: int | None = None,
                 flow_start: bool | None = None, external_id: int = 0,
                 linked_correlation_id: int = 0, extra_meta: dict[str, str] | None = None,
                 structured_input_shapes: Any = None, structured_input_strides: Any = None,
                 input_dtypes: Any = None, python_id: int = -1, python_parent_id: int = -1,
                 python_module_id: int = -1):
        self.id, self.node_id, self.name, self.thread = id, node_id, name, thread
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.fwd_thread, self.input_shapes, self.stack = fwd_thread, input_shapes, stack
        self.scope, self.use_device = scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.sequence_nr, self.device_type, self.device_index = (sequence_nr, device_type,
                                                                 device_index)
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.flops, self.concrete_inputs, self.kwinputs = flops, concrete_inputs or [], kwinputs
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.activity_type, self._metadata_json = activity_type, metadata_json
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.extra_meta, self.input_dtypes = extra_meta, input_dtypes
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.python_id, self.python_parent_id = python_id, python_parent_id
        self.python_module_id = python_module_id
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def key(self) -> str:
        """By what events are grouped: the name."""
        return self.name

    def append_kernel(self, name: str, device: int, duration: int) -> None:
        """Remember a kernel that ran on a device for this event."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """`child` ran inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """This one ran inside `parent`."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self) -> float:
        """The time from start to end, in microseconds."""
        return self.time_range.end - self.time_range.start

    @property
    def self_cpu_time_total(self) -> float:
        """The time without that of the events inside."""
        if self.is_async:
            return 0
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes that it took itself, without what ran inside it."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    self_device_memory_usage = 0

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
                f"device_type={self.device_type} node_id={self.node_id} "
                f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
                f"end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]} "
                f"{self.use_device}_time={self.device_time_str} name={self.name} "
                f"thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} "
                f"{self.use_device}_memory_usage={self.device_memory_usage} "
                f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
                f"is_legacy={self.is_legacy}>")


class FunctionEventAvg(FormattedTimesMixin):
    """The sum over several events of one key."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_children: Any = None
        self.cpu_parent: Any = None
        self.device_type = DeviceType.CPU
        self.flops = 0

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or other such sums of the same key."""
        if self.key is None:
            self.key, self.node_id = other.key, other.node_id
            for name in ("is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name",
                         "input_shapes", "stack", "scope", "device_type", "is_legacy",
                         "use_device", "is_user_annotation"):
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in ("cpu_time_total", "self_cpu_time_total", "device_time_total",
                     "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
                     "device_memory_usage", "self_device_memory_usage", "count"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}  self_{device}_time="
                f"{self.self_device_time_total_str} {device}_time={self.device_time_str} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
                f"{device}_memory_usage={self.device_memory_usage}>")


class EventList(list):
    """Events, or averages of them."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)

    def _populate_cpu_children(self) -> None:
        """Find which event ran inside which: by thread, the innermost that encloses it."""
        threads: dict[Any, list[FunctionEvent]] = defaultdict(list)
        for event in self:
            if not event.is_async and event.device_type is DeviceType.CPU:
                threads[event.thread, event.node_id].append(event)
        for events in threads.values():
            events.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
            enclosing: list[FunctionEvent] = []
            for event in events:
                while enclosing and (event.time_range.start >= enclosing[-1].time_range.end
                                     or event.time_range.end > enclosing[-1].time_range.end):
                    enclosing.pop()
                if enclosing:
                    enclosing[-1].append_cpu_child(event)
                    event.set_cpu_parent(enclosing[-1])
                enclosing.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, in microseconds."""
        return sum(e.self_cpu_time_total for e in self)

    def __str__(self) -> str:
        return self.table()

    def table(self, sort_by: str | None = None, row_limit: int = 100,
              max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """The events as a table, at most `row_limit` of them (-1: all), the largest `sort_by`
        first."""
        return build_table(self, sort_by, row_limit, max_src_column_width, max_name_column_width,
                           max_shapes_column_width, header, top_level_events_only, time_unit)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums over the events of one name (and input shapes, and innermost stack frames)."""
        groups: dict[Any, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = (event.key, event.node_id, str(event.device_type), event.is_legacy,
                   str(event.input_shapes) if group_by_input_shapes else "",
                   tuple((event.stack or [])[:group_by_stack_n]),
                   event.overload_name if group_by_overload_name else "")
            groups[key].add(event)
        averages = EventList(groups.values(), use_device=self._use_device,
                             profile_memory=self._profile_memory, with_flops=self._with_flops)
        for average in averages:
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None if total.count == 0 else event.key
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON for `chrome://tracing` and Perfetto."""
        events = [{"name": e.trace_name, "ph": "X", "ts": e.time_range.start,
                   "dur": e.cpu_time_total, "tid": e.thread, "pid": "CPU functions",
                   "args": {"Sequence number": e.sequence_nr, "Input Dims": e.input_shapes or []}}
                  for e in self]
        with open(path, "w") as file:
            json.dump(events, file)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The names that `export_stacks` takes."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with their times, for flame graphs."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        table = str.maketrans(" ;\t\n", "____")
        attribute = metric.replace("cuda", "device").replace("xpu", "device")
        with open(path, "w") as file:
            for event in self:
                value = getattr(event, attribute, 0)
                if event.stack and int(value) > 0:
                    stack = ";".join(frame.translate(table) for frame in reversed(event.stack))
                    file.write(f"{stack} {int(value)}\n")


__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval",
           "Kernel", "MemRecordsAcc", "StringTable"]
