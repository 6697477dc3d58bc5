"""Where values come from (sources), and what a trace assumes about them (guards)."""
from __future__ import annotations

import dataclasses
import enum
import traceback
from collections.abc import Callable, Iterator
from typing import Any


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
