"""Sources: where values of a traced program come from."""
from __future__ import annotations

import dataclasses
import enum
from typing import Any

from flambeau._guards import ChainedSource, GuardSource, Source


def _expression(form: str) -> Any:
    """The `name` of a source, which `form` makes of its fields."""
    return property(lambda self: form.format(self))


@dataclasses.dataclass(frozen=True)
class LocalSource(Source):
    """A local variable.

    >>> AttrSource(LocalSource("x"), "shape").name
    "L['x'].shape"
    """
    local_name: str
    is_input: bool = False
    dynamism: Any = None
    is_derefed_cell_contents: bool = False

    guard_source = GuardSource.LOCAL
    name = _expression("L[{0.local_name!r}]")


@dataclasses.dataclass(frozen=True)
class GlobalSource(Source):
    """A global variable."""
    global_name: str

    guard_source = GuardSource.GLOBAL
    name = _expression("G[{0.global_name!r}]")


@dataclasses.dataclass(frozen=True)
class ConstantSource(Source):
    """A value of the tracer's own, by name."""
    source_name: str

    guard_source = GuardSource.CONSTANT
    name = _expression("{0.source_name}")

    def make_guard(self, fn: Any) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class EphemeralSource(Source):
    """A value that is not there once the trace is made."""
    desc: str | None = None

    guard_source = GuardSource.EPHEMERAL
    @property
    def name(self) -> str:
        return f"<ephemeral{': ' + self.desc if self.desc is not None else ''}>"

    def is_ephemeral(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class RandomValueSource(Source):
    """A random number that was drawn."""
    random_call_index: int

    guard_source = GuardSource.RANDOM_VALUE
    name = _expression("random_value_{0.random_call_index}")


@dataclasses.dataclass(frozen=True)
class SyntheticLocalSource(Source):
    """A local variable that the tracer has made."""
    local_name: str

    guard_source = GuardSource.SYNTHETIC_LOCAL
    name = _expression("SYNTHETIC_LOCAL[{0.local_name!r}]")


@dataclasses.dataclass(frozen=True)
class AttrSource(ChainedSource):
    """An attribute."""
    member: str

    def __post_init__(self) -> None:
        if "." in self.member:
            raise AssertionError(f"AttrSource member must not contain '.', got {self.member!r}. "
                                 "Use one AttrSource for each name.")

    @property
    def name(self) -> str:
        if not self.member.isidentifier():
            return f"getattr({self.base.name}, {self.member!r})"
        return f"{self.base.name}.{self.member}"


@dataclasses.dataclass(frozen=True)
class GetItemSource(ChainedSource):
    """An item."""
    index: Any
    index_is_slice: bool = False

    name = _expression("{0.base.name}[{0.index!r}]")


@dataclasses.dataclass(frozen=True)
class DictGetItemSource(GetItemSource):
    """An item of a dict."""


@dataclasses.dataclass(frozen=True)
class NegateSource(ChainedSource):
    """The negative of a value."""

    name = _expression("{0.base.name}.__neg__()")


@dataclasses.dataclass(frozen=True)
class GradSource(ChainedSource):
    """The gradient of a tensor."""
    member: str = "grad"

    name = _expression("{0.base.name}.{0.member}")


class TensorProperty(enum.Enum):
    """A number that a tensor has."""
    SIZE, STRIDE, STORAGE_OFFSET = range(3)

    def method_name(self) -> str:
        """The method that gives it."""
        return {"SIZE": "size", "STRIDE": "stride",
                "STORAGE_OFFSET": "storage_offset"}[self.name]


@dataclasses.dataclass(frozen=True)
class TensorPropertySource(ChainedSource):
    """A size, a stride or the storage offset of a tensor.

    >>> TensorPropertySource(LocalSource("x"), TensorProperty.SIZE, 0).name
    "L['x'].size()[0]"
    """
    prop: TensorProperty
    idx: int | None = None

    def __post_init__(self) -> None:
        if (self.prop is TensorProperty.STORAGE_OFFSET) != (self.idx is None):
            raise AssertionError("sizes and strides have an index, the storage offset has none")

    @property
    def name(self) -> str:
        place = "" if self.idx is None else f"[{self.idx}]"
        return f"{self.base.name}.{self.prop.method_name()}(){place}"


@dataclasses.dataclass(frozen=True)
class NNModuleSource(ChainedSource):
    """A module."""

    name = _expression("{0.base.name}")


@dataclasses.dataclass(frozen=True)
class UnspecializedNNModuleSource(NNModuleSource):
    """A module whose attributes may change."""


@dataclasses.dataclass(frozen=True)
class TypeSource(ChainedSource):
    """The type of a value."""

    name = _expression("type({0.base.name})")


@dataclasses.dataclass(frozen=True)
class NumpyTensorSource(ChainedSource):
    """An array as a tensor."""

    name = _expression("___from_numpy({0.base.name})")


def is_from_local_source(source: Source, *, only_allow_input: bool = False) -> bool:
    """Does a value come from a local variable?"""
    base = source.get_base() if isinstance(source, ChainedSource) else source
    return isinstance(base, LocalSource) and (not only_allow_input or base.is_input)


def is_from_global_source(source: Source) -> bool:
    """Does a value come from a global variable?"""
    base = source.get_base() if isinstance(source, ChainedSource) else source
    return isinstance(base, GlobalSource)


def is_constant_source(source: Source) -> bool:
    """Is it a value of the tracer's own?"""
    return isinstance(source, ConstantSource)


__all__ = ["AttrSource", "ConstantSource", "GetItemSource", "GlobalSource", "LocalSource",
           "NegateSource", "Source", "TensorProperty", "TensorPropertySource"]
