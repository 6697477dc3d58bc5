"""Which sizes of the inputs may differ from those of the example: `Dim`, and what holds them."""
from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
from typing import Any

from flambeau import Tensor, nn
from flambeau.utils import _pytree

__all__ = ["AdditionalInputs", "Constraint", "Dim", "dims"]


class _Infinity(int):
    def __repr__(self) -> str:
        return "int_oo"

    __str__ = __repr__


int_oo = _Infinity(sys.maxsize - 1)


class _HintKind(enum.Enum):
    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()


@dataclasses.dataclass
class _DimHint:
    """A size about which nothing is said but how it may behave."""
    type: _HintKind
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not (min is None or min >= 0) or not (max is None or max >= 0):
            raise AssertionError("min and max must be non-negative")
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        bounds = "".join(f", {name}={value}" for name, value in
                         (("min", self.min), ("max", self.max)) if value is not None)
        return f"DimHint({self.type.name}{bounds})"

    def __hash__(self) -> int:
        return hash((self.type, self.min, self.max))


class Dim:
    """A size that may differ from call to call, by name; sizes of one name are equal. `2 * dim`
    and `dim + 1` are sizes too. `Dim.AUTO` lets the program decide, `Dim.DYNAMIC` demands that it
    works for others, `Dim.STATIC` is what is not named.

    >>> batch = Dim("batch", min=2, max=64)
    >>> batch, 2 * batch
    (Dim('batch', max=64), 2*batch)
    """

    AUTO = _DimHint(_HintKind.AUTO)
    DYNAMIC = _DimHint(_HintKind.DYNAMIC)
    STATIC = _DimHint(_HintKind.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        low, high = 0 if min is None else min, int_oo if max is None else max
        if not high > low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    def __add__(self, other: Any) -> Dim:
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to add {other} to {self.__name__}, where an integer was expected. "
                "(Only increasing linear operations with integer coefficients are supported.)")
        return _DerivedDim(self, 1, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to subtract {other} from {self.__name__}, where an integer was "
                "expected. (Only increasing linear operations with integer coefficients are "
                "supported.)")
        return self + -other

    def __rsub__(self, other: Any) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations with "
            "integer coefficients are supported.)")

    def __mul__(self, other: Any) -> Dim:
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer "
                "was expected. (Only increasing linear operations with integer coefficients are "
                "supported.)")
        return _DerivedDim(self, other, 0)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        low = "" if self.min == 2 else f", min={self.min}"
        high = "" if self.max == int_oo else f", max={self.max}"
        return f"Dim('{self.__name__}'{low}{high})"


class _DerivedDim(Dim):
    """`scale * root + shift`."""

    def __init__(self, root: Dim, scale: int, shift: int):
        if isinstance(root, _DerivedDim):
            scale, shift, root = root.scale * scale, root.shift * scale + shift, root.root
        self.root: Dim = root
        self.scale: int = scale
        self.shift: int = shift
        product = root.__name__ if scale == 1 else f"{scale}*{root.__name__}"
        self.__name__ = product if not shift else \
            f"{product} {'+' if shift > 0 else '-'} {abs(shift)}"

    def fn(self, value: int) -> int:
        """The size for a size of the root."""
        return self.scale * value + self.shift

    @property
    def min(self) -> int:
        """The least size."""
        return self.fn(self.root.min)

    @property
    def max(self) -> int:
        """The largest size."""
        return int_oo if self.root.max == int_oo else self.fn(self.root.max)

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several `Dim`s with the same bounds.

    >>> dims("height", "width", min=3)
    (Dim('height', min=3), Dim('width', min=3))
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


@dataclasses.dataclass
class _Constraint:
    """What is demanded of one size of one tensor."""
    t_id: int
    dim: int
    name: str
    low: int
    high: int


@dataclasses.dataclass
class _DerivedConstraint(_Constraint):
    """The same, of a size that follows from another."""
    root: str = ""


@dataclasses.dataclass
class _RelaxedConstraint:
    """A size that may be anything."""
    t_id: int
    dim: int


Constraint = _Constraint | _DerivedConstraint | _RelaxedConstraint


class ShapesCollection:
    """Dynamic sizes by tensor, for inputs that are nested.

    >>> import flambeau
    >>> x, collection = flambeau.ones(3, 2), ShapesCollection()
    >>> collection[x] = {0: Dim("batch")}
    >>> collection.dynamic_shapes(flambeau.nn.ReLU(), (x,))
    {'input': {0: Dim('batch', min=0)}}
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.get(id(t), shape)
        if known is not shape and known != shape:
            raise AssertionError(f"Shapes assigned to input have conflicting definitions: {known} "
                                 f"and {shape}")
        self._shapes[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: Any = None) -> Any:
        """The `dynamic_shapes` argument of `export` for these inputs."""
        found: set[int] = set()

        def look(value: Any) -> Any:
            found.add(id(value))
            return self._shapes.get(id(value))
        shapes = _pytree.tree_map(look, bind(m, args, kwargs or {}))
        if missing := self._shapes.keys() - found:
            raise ValueError(f"Some tensors that were assigned shapes were not found in args: "
                             f"{missing}.")
        return shapes


class AdditionalInputs:
    """Further example inputs: sizes in which they differ from the first are dynamic.

    >>> import flambeau
    >>> more = AdditionalInputs()
    >>> more.add((flambeau.ones(4, 2),))
    >>> more.dynamic_shapes(flambeau.nn.ReLU(), (flambeau.ones(3, 2),))
    {'input': (DimHint(DYNAMIC), None)}
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add an example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        if not (kwargs is None or isinstance(kwargs, dict)):
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: Any = None) -> Any:
        """The `dynamic_shapes` argument of `export` that makes room for the examples."""
        first = bind(m, args, kwargs or {})
        others = [bind(m, a, k) for a, k in self._examples]
        leaves, spec = _pytree.tree_flatten(first)
        rest = [_pytree.tree_flatten(other) for other in others]
        for _, other_spec in rest:
            if other_spec != spec:
                raise ValueError("The additional inputs do not have the same tree spec as the "
                                 f"original inputs: {other_spec} and {spec}")
        found = []
        for leaf, *more in zip(leaves, *(other for other, _ in rest)):
            if isinstance(leaf, Tensor):
                found.append(tuple([
                    None if all(o.shape[i] == n for o in more) else Dim.DYNAMIC
                    for i, n in enumerate(leaf.shape)]))
            else:
                found.append(None)
        return _pytree.tree_unflatten(found, spec)

    def verify(self, ep: Any) -> None:
        """Run an exported program on all examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def bind(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The inputs by the names of the parameters of `forward`."""
    if isinstance(m, nn.Module) or hasattr(m, "forward"):
        m = m.forward
    return dict(inspect.signature(m).bind(*args, **kwargs).arguments)


