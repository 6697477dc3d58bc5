"""The types of the profiler: what it records, of which devices, and how."""
from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from flambeau.profiler import ProfilerActivity
from flambeau.utils._traceback import CapturedTraceback


class ProfilerState(Enum):
    """What records."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class ActiveProfilerType(Enum):
    """Which profiler runs."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


class RecordScope(Enum):
    """What an event is."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class _EventType(Enum):
    """The kind of an event."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    OutOfMemory = 4
    PyCall = 5
    PyCCall = 6
    Kineto = 7


class _ExperimentalConfig:
    """Further options of a profile. They are kept; the devices that they are for are not there."""

    def __init__(self, profiler_metrics: Sequence[str] = (),
                 profiler_measure_per_kernel: bool = False, verbose: bool = False,
                 performance_events: Sequence[str] = (), enable_cuda_sync_events: bool = False,
                 adjust_profiler_step: bool = False, disable_external_correlation: bool = False,
                 profile_all_threads: bool = False, capture_overload_names: bool = False,
                 record_python_gc_info: bool = False, expose_kineto_event_metadata: bool = False,
                 custom_profiler_config: str = "", adjust_timestamps: bool = False,
                 trace_only: bool = False):
        self.profiler_metrics = list(profiler_metrics)
        self.performance_events = list(performance_events)
        self.verbose, self.capture_overload_names = verbose, capture_overload_names
        self.custom_profiler_config, self.trace_only = custom_profiler_config, trace_only


class ProfilerConfig:
    """What a profile records."""

    def __init__(self, state: ProfilerState, report_input_shapes: bool, profile_memory: bool,
                 with_stack: bool, with_flops: bool, with_modules: bool,
                 experimental_config: _ExperimentalConfig | None = None, trace_id: str = ""):
        self.state, self.report_input_shapes = state, report_input_shapes
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental_config = experimental_config or _ExperimentalConfig()
        self.trace_id = trace_id


__all__ = ["ActiveProfilerType", "CapturedTraceback", "ProfilerActivity", "ProfilerConfig",
           "ProfilerState", "RecordScope"]
