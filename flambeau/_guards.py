"""What tracers know of the program that they are tracing: `TracingContext`, sources, guards.

A *source* says where a value comes from, in a way that finds it again: the local `x`, its item 0.
A *guard* is an assumption about it under which a trace holds.
"""
from __future__ import annotations

import contextlib
import dataclasses
import enum
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


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


class GuardSource(enum.Enum):
    """Of what kind the place is where a value comes from."""
    (LOCAL, GLOBAL, LOCAL_SPECIALIZED_NN_MODULE, GLOBAL_SPECIALIZED_NN_MODULE, CONSTANT,
     RANDOM_VALUE, SHAPE_ENV, LOCAL_FSDP_MODULE, GLOBAL_FSDP_MODULE, BACKWARD_STATE, EPHEMERAL,
     SYNTHETIC_LOCAL, LOCAL_UNSPECIALIZED_NN_MODULE, GLOBAL_UNSPECIALIZED_NN_MODULE,
     LOCAL_UNSPECIALIZED_BUILTIN_NN_MODULE, GLOBAL_UNSPECIALIZED_BUILTIN_NN_MODULE,
     TEMP_LOCAL) = range(17)

    def is_fsdp_module(self) -> bool:
        """Is it a module of FSDP?"""
        return self.name.endswith("FSDP_MODULE")

    def is_specialized_nn_module(self) -> bool:
        """Is it a module that is taken to be constant?"""
        return "_SPECIALIZED_NN" in self.name or self.is_fsdp_module()

    def is_unspecialized_nn_module(self) -> bool:
        """Is it a module that may change?"""
        return "UNSPECIALIZED" in self.name

    def is_unspecialized_builtin_nn_module(self) -> bool:
        """Is it a module of `torch.nn` that may change?"""
        return "BUILTIN" in self.name

    def is_local(self) -> bool:
        """Is it found from a local variable?"""
        return self.name.startswith("LOCAL")


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a value comes from."""

    def is_dict_key(self) -> bool:
        """Is it the key of a dict?"""
        return False

    def is_ephemeral(self) -> bool:
        """Is there no such place once the trace is made?"""
        return False

    def reconstruct(self, codegen: Any) -> None:
        """Write code that finds the value."""
        raise NotImplementedError

    @property
    def guard_source(self) -> GuardSource:
        """Of what kind the place is."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The place as an expression of Python's."""
        raise NotImplementedError

    def make_guard(self, fn: Callable[..., Any]) -> Guard:
        """An assumption about the value."""
        if self.guard_source is GuardSource.CONSTANT:
            raise NotImplementedError
        return Guard(self, fn)

    def is_specialized_nn_module(self) -> bool:
        """Is it a module that is taken to be constant?"""
        return self.guard_source.is_specialized_nn_module()

    def subguards_allowed(self) -> bool:
        """Can there be assumptions about its parts?"""
        return self.guard_source is not GuardSource.SYNTHETIC_LOCAL


@dataclasses.dataclass(frozen=True)
class ChainedSource(Source):
    """A part of what another source gives."""
    base: Source

    def is_dict_key(self) -> bool:
        return self.base.is_dict_key()

    def is_ephemeral(self) -> bool:
        return self.base.is_ephemeral()

    @property
    def guard_source(self) -> GuardSource:
        return self.base.guard_source

    def get_base(self) -> Source:
        """The source at the beginning of the chain."""
        found: Source = self
        while isinstance(found, ChainedSource):
            found = found.base
        return found


@dataclasses.dataclass(frozen=True)
class ShapeGuard:
    """An expression of sizes that a trace takes to be true."""
    expr: Any
    sloc: Any
    size_oblivious: bool


@dataclasses.dataclass
class Guard:
    """An assumption about the value of a source; `create_fn` makes what checks it."""
    originating_source: Source
    create_fn: Callable[..., Any]
    guard_types: list[str] | None = None
    code_list: list[str] | None = None
    obj_weakref: Any = None
    guarded_class_weakref: Any = None
    stack: Any = None
    user_stack: Any = None
    _hash: int | None = None
    _unserializable: bool = False

    def __hash__(self) -> int:
        return hash((self.name, self.source, id(self.create_fn)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and hash(self) == hash(other)

    @property
    def name(self) -> str:
        """The source as an expression."""
        return self.originating_source.name

    @property
    def source(self) -> GuardSource:
        """Of what kind the source is."""
        return self.originating_source.guard_source

    def create_fn_name(self) -> str:
        """The kind of assumption."""
        inner = getattr(self.create_fn, "func", self.create_fn)
        return inner.__name__

    def is_local(self) -> bool:
        """Is it about what is found from a local variable?"""
        return self.source.is_local()

    def create(self, builder: Any) -> Any:
        """Make what checks it."""
        return self.create_fn(builder, self)


class GuardEnvExpr:
    """An assumption that is about no single value."""


@dataclasses.dataclass(frozen=True)
class DuplicateInputs(GuardEnvExpr):
    """Two sources give the same object."""
    input_source_a: Source
    input_source_b: Source


@dataclasses.dataclass(frozen=True)
class StorageOverlap(GuardEnvExpr):
    """Which tensors share memory, and which do not."""
    overlapping_sources: list[Source]
    non_overlapping_sources: list[Source]


class Checkpointable(Generic[T]):
    """What can go back to an earlier state."""

    def copy_graphstate(self) -> T:
        """The state now."""
        raise NotImplementedError

    def restore_graphstate(self, state: T) -> None:
        """Go back to a state."""
        raise NotImplementedError


class GuardsCheckpointState:
    """The guards at one time."""

    def __init__(self, dynamo_guards: set[Guard]):
        self.dynamo_guards = dynamo_guards

    def diff(self, other: GuardsCheckpointState) -> set[Guard] | None:
        """The guards that the other time has not; None if there are none."""
        return self.dynamo_guards.difference(other.dynamo_guards) or None


class GuardsSet:
    """A set of guards."""

    def __init__(self, inner: set[Guard] | None = None):
        self.inner: set[Guard] = set() if inner is None else inner

    def __iter__(self) -> Iterator[Guard]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return bool(self.inner)

    def __sub__(self, other: GuardsSet) -> GuardsSet:
        return GuardsSet(self.inner - other.inner)

    def add(self, guard: Guard, *, collect_debug_stack: bool = True, skip: int = 0) -> None:
        """Add a guard; where it was made is noted."""
        if guard in self.inner:
            return
        if collect_debug_stack and guard.stack is None:
            guard.stack = traceback.extract_stack()[:-1 - skip]
        self.inner.add(guard)

    def update(self, *others: set[Guard]) -> None:
        """Add guards."""
        for other in others:
            for guard in other:
                self.add(guard)

    def remove_guards_with_source(self, source: Source) -> None:
        """Take out the guards about a source."""
        self.inner = {g for g in self.inner if g.originating_source != source}


class GuardsContext(Checkpointable[GuardsCheckpointState]):
    """The guards of a trace."""

    def __init__(self) -> None:
        self.dynamo_guards = GuardsSet()
        self.aotautograd_guards: list[GuardEnvExpr] = []

    def copy_graphstate(self) -> GuardsCheckpointState:
        return GuardsCheckpointState(set(self.dynamo_guards.inner))

    def restore_graphstate(self, state: GuardsCheckpointState) -> None:
        self.dynamo_guards = GuardsSet(state.dynamo_guards)


class ModuleContextCheckpointState:
    """The modules of a trace at one time."""

    def __init__(self, nn_modules: dict[str, Any]):
        self.nn_modules = nn_modules

    def diff(self, other: ModuleContextCheckpointState) -> set[str] | None:
        """The names that the other time has not; None if there are none."""
        return set(self.nn_modules) - set(other.nn_modules) or None


class ModuleContext(Checkpointable[ModuleContextCheckpointState]):
    """The modules of a trace."""

    def __init__(self) -> None:
        self.nn_modules: dict[str, Any] = {}

    def copy_graphstate(self) -> ModuleContextCheckpointState:
        return ModuleContextCheckpointState(dict(self.nn_modules))

    def restore_graphstate(self, state: ModuleContextCheckpointState) -> None:
        self.nn_modules = state.nn_modules


class GlobalContextCheckpointState:
    """The global settings of a trace at one time."""

    def __init__(self, global_states: dict[str, Any]):
        self.global_state = global_states

    def diff(self, other: GlobalContextCheckpointState) -> set[str] | None:
        """The names that the other time has not; None if there are none."""
        return set(self.global_state) - set(other.global_state) or None


class GlobalContext(Checkpointable[GlobalContextCheckpointState]):
    """The global settings of a trace: grad mode, autocast."""

    def __init__(self) -> None:
        self.global_state: dict[str, tuple[Callable[..., Any], Any]] = {}

    def copy_graphstate(self) -> GlobalContextCheckpointState:
        return GlobalContextCheckpointState(self.global_state)

    def restore_graphstate(self, state: GlobalContextCheckpointState) -> None:
        self.global_state = state.global_state
        for restore, value in self.global_state.values():
            restore(value)


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
