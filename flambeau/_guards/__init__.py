"""What tracers know of the program that they are tracing: `TracingContext`, sources, guards.

A *source* says where a value comes from, in a way that finds it again: the local `x`, its item 0.
A *guard* is an assumption about it under which a trace holds.
"""
from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from flambeau._guards.guards import (
    ChainedSource,
    DuplicateInputs,
    Guard,
    GuardEnvExpr,
    GuardSource,
    GuardsSet,
    ShapeGuard,
    Source,
    StorageOverlap,
)
from flambeau._guards.states import (
    Checkpointable,
    GlobalContext,
    GlobalContextCheckpointState,
    GuardsCheckpointState,
    GuardsContext,
    ModuleContext,
    ModuleContextCheckpointState,
    T,
)
from flambeau._support.own_methods import adopt


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CompileId:
    """Which compilation it is."""
    frame_id: int | None
    frame_compile_id: int | None
    compiled_autograd_id: int | None = None

    def __str__(self) -> str:
        if self.compiled_autograd_id is not None:
            frame = "-" if self.frame_id is None else f"{self.frame_id}/{self.frame_compile_id}"
            return f"!{self.compiled_autograd_id}/{frame}" if self.frame_id is not None \
                else f"!{self.compiled_autograd_id}"
        return f"{self.frame_id}/{self.frame_compile_id}"

    @classmethod
    def from_string(cls, compile_id: str | None) -> CompileId | None:
        """The id that `str` has written."""
        if compile_id is None:
            return None
        autograd = None
        if compile_id.startswith("!"):
            number, _, compile_id = compile_id[1:].partition("/")
            autograd = int(number)
        frame, _, number = compile_id.partition("/")
        return cls(frame_id=int(frame) if frame else None,
                   frame_compile_id=int(number) if number else None,
                   compiled_autograd_id=autograd)


class TraceId(NamedTuple):
    """Which attempt of a compilation it is."""
    compile_id: CompileId
    attempt: int

    def __str__(self) -> str:
        return f"{self.compile_id}_{self.attempt}" if self.attempt else str(self.compile_id)


class HopSubgraphCache:
    """The graphs that higher-order ops have been given, by their identity."""

    def __init__(self) -> None:
        self._entries: dict[Any, Any] = {}

    def add(self, key: Any, value: Any) -> None:
        """Keep a graph."""
        self._entries[key] = value

    def get(self, key: Any) -> Any:
        """A graph that was kept; None if it was not."""
        return self._entries.get(key)


_compile_context: ContextVar[Any] = ContextVar("compile_context", default=None)
_tracing_context: ContextVar[Any] = ContextVar("tracing_context", default=None)


class CompileContext:
    """The compilation that is at work."""

    def __init__(self, compile_id: CompileId | None):
        self.compile_id, self.attempt = compile_id, 0
        self.shape_env_guards: list[str] = []

    @staticmethod
    def get() -> CompileContext:
        """The compilation at work; AssertionError if there is none."""
        found = _compile_context.get()
        assert found is not None
        return found

    @staticmethod
    def try_get() -> CompileContext | None:
        """The compilation at work, if there is one."""
        return _compile_context.get()

    @staticmethod
    def current_compile_id() -> CompileId | None:
        """The id of the compilation at work."""
        found = CompileContext.try_get()
        return None if found is None else found.compile_id

    @staticmethod
    def current_trace_id() -> TraceId | None:
        """The id of the attempt at work."""
        found = CompileContext.try_get()
        return None if found is None or found.compile_id is None else TraceId(found.compile_id,
                                                                             found.attempt)


class TracingContext:
    """What is known of the program that is being traced; `TracingContext.try_get()` finds it.

    >>> context = TracingContext(None)
    >>> with tracing(context):
    ...     TracingContext.try_get() is context
    True
    """

    @staticmethod
    def try_get() -> TracingContext | None:
        """The context at work, if there is one."""
        return _tracing_context.get()

    @staticmethod
    def get() -> TracingContext:
        """The context at work; RuntimeError if there is none."""
        found = TracingContext.try_get()
        if found is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return found

    def __init__(self, fake_mode: Any):
        self.guards_context = GuardsContext()
        self.module_context = ModuleContext()
        self.global_context = GlobalContext()
        self.hop_dispatch_set_cache = HopSubgraphCache()
        self.previously_inlined_functions: dict[Any, Any] = {}
        self.previously_cleaned_instructions: dict[Any, Any] = {}
        self.fake_mode = fake_mode
        self.frame_summary_stack: list[Any] = []
        self.loc_in_frame: tuple[str, int, str] | None = None
        self.fw_metadata: Any = None
        self.aot_graph_name: Any = None
        self.params_flat: list[Any] | None = None
        self.params_flat_unwrap_subclasses: list[Any] | None = None
        self.params_unwrapped_to_flat_index: Any = None
        self.output_strides: list[Any] | None = None
        self.force_unspec_int_unbacked_size_like = False
        self.tensor_to_context: dict[int, Any] = {}
        self.fakify_first_call = False
        self.traced_code: list[Any] | None = []

    def clear(self) -> None:
        """Forget what belongs to one attempt."""
        self.frame_summary_stack.clear()
        self.loc_in_frame = None
        self.fw_metadata = self.aot_graph_name = self.params_flat = self.output_strides = None

    @staticmethod
    @contextlib.contextmanager
    def patch(**kwargs: Any) -> Iterator[None]:
        """Inside, the context has these attributes."""
        context = TracingContext.get()
        before = {name: getattr(context, name) for name in kwargs}
        for name, value in kwargs.items():
            setattr(context, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(context, name, value)

    @staticmethod
    def extract_stack() -> traceback.StackSummary:
        """Where the traced program is."""
        found = TracingContext.try_get()
        return traceback.StackSummary.from_list([] if found is None else found.frame_summary_stack)

    @staticmethod
    @contextlib.contextmanager
    def clear_frame() -> Iterator[None]:
        """Inside, the traced program is nowhere."""
        context = TracingContext.get()
        before = context.frame_summary_stack, context.loc_in_frame
        context.frame_summary_stack, context.loc_in_frame = [], None
        try:
            yield
        finally:
            context.frame_summary_stack, context.loc_in_frame = before

    @staticmethod
    @contextlib.contextmanager
    def current_frame(frame_summary: Any) -> Iterator[None]:
        """Inside, the traced program is in one frame more."""
        context = TracingContext.get()
        if frame_summary is not None:
            context.frame_summary_stack.append(frame_summary)
        before, context.loc_in_frame = context.loc_in_frame, None
        try:
            yield
        finally:
            if frame_summary is not None:
                context.frame_summary_stack.pop()
            context.loc_in_frame = before

    @staticmethod
    @contextlib.contextmanager
    def report_output_strides() -> Iterator[list[Any] | None]:
        """Gives a list that the strides of results are put in."""
        context = TracingContext.try_get()
        if context is None:
            yield None
            return
        before, context.output_strides = context.output_strides, []
        try:
            yield context.output_strides
        finally:
            context.output_strides = before

    @staticmethod
    def set_current_loc(filename: str, lineno: int, frame_name: str) -> None:
        """Say where the traced program is."""
        TracingContext.get().loc_in_frame = filename, lineno, frame_name

    @staticmethod
    def get_traced_code() -> list[Any] | None:
        """The code that has been traced."""
        found = TracingContext.try_get()
        return None if found is None else found.traced_code


@contextlib.contextmanager
def compile_context(context: CompileContext | None) -> Iterator[CompileContext | None]:
    """Inside, a compilation is at work."""
    token = _compile_context.set(context)
    try:
        yield context
    finally:
        _compile_context.reset(token)


@contextlib.contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """Inside, a trace is at work."""
    token = _tracing_context.set(context)
    try:
        yield context
    finally:
        _tracing_context.reset(token)


def detect_fake_mode(inputs: Any = None) -> Any:
    """The fake mode of the trace at work, of the modes that are entered, or of tensors among
    `inputs`; AssertionError if these differ."""
    from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from flambeau.utils import _pytree
    from flambeau.utils._python_dispatch import _get_current_dispatch_mode_stack
    found: list[tuple[Any, str, int]] = []
    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        found.append((context.fake_mode, "tracing context", 0))
    for i, mode in enumerate(reversed(_get_current_dispatch_mode_stack())):
        if isinstance(mode, FakeTensorMode):
            found.append((mode, "active fake mode", i))
    for i, leaf in enumerate(_pytree.tree_leaves(inputs)):
        if isinstance(leaf, FakeTensor):
            found.append((leaf.fake_mode, "fake tensor input", i))
    if not found:
        return None
    mode, where, _ = found[0]
    for other, there, i in found[1:]:
        assert mode is other, (f"fake mode ({mode}) from {where} 0 doesn't match mode ({other}) "
                               f"from {there} {i}")
    return mode


def active_fake_mode() -> Any:
    """The innermost fake mode that is entered; None if there is none."""
    from flambeau._subclasses.fake_tensor import FakeTensorMode
    from flambeau.utils._python_dispatch import _get_current_dispatch_mode_stack
    return next((mode for mode in reversed(_get_current_dispatch_mode_stack())
                 if isinstance(mode, FakeTensorMode)), None)


__all__ = ["ChainedSource", "CompileContext", "CompileId", "Guard", "GuardSource", "GuardsSet",
           "Source", "TracingContext", "active_fake_mode", "compile_context", "detect_fake_mode",
           "tracing"]

adopt(globals(), "_guards.")
