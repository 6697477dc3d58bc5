"""The example's inputs, flat and with names, and which of their sizes are dynamic."""
from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._dynamo.exc import UserError
from flambeau.export._trace.sizes import Expression, Symbol, ValueRange
from flambeau.export.dynamic_shapes import Dim, _DerivedDim, _DimHint, _HintKind, int_oo
from flambeau.fx.experimental.symbolic_shapes import ConstraintViolationError
from flambeau.utils import _pytree

# ---- inputs -------------------------------------------------------------------------------------

class Inputs:
    """The example, flat, with names."""

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]):
        signature = inspect.signature(module.forward)
        bound = signature.bind(*args, **kwargs)
        variadic = next((p.name for p in signature.parameters.values()
                         if p.kind is p.VAR_POSITIONAL), None)
        names = [p.name for p in signature.parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.argument_names = [names[i] if i < len(names) else f"{variadic}_{i - len(names)}"
                               for i in range(len(args))] + list(kwargs)
        self.args, self.kwargs, self.bound = args, kwargs, bound.arguments
        self.leaves, self.spec = _pytree.tree_flatten((args, kwargs))
        self.paths = [path for path, _ in _pytree.tree_leaves_with_path((args, kwargs))]
        self.names = [self._name(path) for path in self.paths]

    def _name(self, path: Any) -> str:
        parts = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key))))
                 for key in path]
        head = self.argument_names[int(parts[1])] if parts[0] == "0" else parts[1]
        return "_".join([head, *parts[2:]]).replace(".", "_")

    def source(self, i: int) -> str:
        """The input as guards of PyTorch's call it."""
        path = self.paths[i]
        parts = [getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))
                 for key in path]
        head = self.argument_names[parts[0 + 1]] if parts[0] == 0 else parts[1]
        return f"L['{head}']" + "".join(f"[{part!r}]" for part in parts[2:])


def _leaf_shapes(shapes: Any, value: Any, found: list[Any], where: str) -> None:
    """Collect what `dynamic_shapes` says of each leaf of `value`."""
    if isinstance(value, (list, tuple)) and not isinstance(value, flambeau.Size):
        if shapes is not None and (not isinstance(shapes, (list, tuple))
                                   or len(shapes) != len(value)):
            raise UserError(f"Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs{where}` has {len(value)} elements, but "
                            f"`dynamic_shapes{where}` has {_length(shapes)} elements")
        for i, item in enumerate(value):
            _leaf_shapes(None if shapes is None else shapes[i], item, found, f"{where}[{i}]")
    elif isinstance(value, dict):
        if shapes is not None and set(shapes) != set(value):
            raise UserError(f"Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs{where}` has keys {list(value)}, but "
                            f"`dynamic_shapes{where}` has keys {list(shapes)}")
        for key, item in value.items():
            _leaf_shapes(None if shapes is None else shapes[key], item, found, f"{where}[{key!r}]")
    else:
        leaves = _pytree.tree_leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            found.append(shapes)
        else:
            given = _pytree.tree_leaves(shapes, is_leaf=lambda s: s is None or (isinstance(
                s, (dict, tuple)) and all(isinstance(d, (Dim, _DimHint, int, type(None)))
                                          for d in (s.values() if isinstance(s, dict) else s))))
            found += [None] * len(leaves) if shapes is None else given


def _length(shapes: Any) -> int:
    return len(shapes) if hasattr(shapes, "__len__") else 1


def _dynamic(inputs: Inputs, shapes: Any) -> list[Any]:
    """What `dynamic_shapes` says of each leaf of the inputs."""
    if shapes is None:
        return [None] * len(inputs.leaves)
    if isinstance(shapes, dict):
        names = list(inputs.bound)
        if set(shapes) != set(names):
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {names} of `inputs`, but here they are {list(shapes)}. Alternatively, you "
                "could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`.")
        ordered = [shapes[name] for name in names]
    else:
        ordered = list(shapes)
        if len(ordered) != len(inputs.bound):
            raise UserError("Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs` has {len(inputs.bound)} elements, but "
                            f"`dynamic_shapes` has {len(ordered)} elements")
    found: list[Any] = []
    for (name, value), shape in zip(inputs.bound.items(), ordered):
        _leaf_shapes(shape, value, found, f"[{name!r}]")
    return found


class Sizes:
    """The dynamic sizes of the example: a symbol, or an expression of one, for each."""

    def __init__(self, inputs: Inputs, shapes: list[Any]):
        self.inputs = inputs
        self.ranges: dict[Symbol, ValueRange] = {}
        self.of: dict[tuple[int, int], Symbol | Expression] = {}        # input, dimension
        self.flexible: set[Symbol] = set()              # those that may turn out to be static
        self.hinted: dict[Symbol, None] = {}            # those that nobody has named
        self.names: dict[Symbol, str] = {}
        self.sources: dict[Symbol, str] = {}
        self._taken: set[int] = set()
        self._by_name: dict[str, Symbol] = {}
        places: dict[str, list[tuple[int, int, Any]]] = {}
        for i, (leaf, shape) in enumerate(zip(inputs.leaves, shapes)):
            if isinstance(leaf, Tensor) and shape is not None:
                for dim, wanted in self._wanted(leaf, shape, inputs.names[i],
                                                   inputs.source(i)):
                    root = wanted.root if isinstance(wanted, _DerivedDim) else wanted
                    key = root.__name__ if isinstance(root, Dim) else f"{i} {dim}"
                    places.setdefault(key, []).append((i, dim, wanted))
        for found in places.values():
            self._enter(found)

    def _wanted(self, leaf: Tensor, shape: Any, name: str, source: str
                ) -> Iterator[tuple[int, Any]]:
        items = shape.items() if isinstance(shape, dict) else enumerate(shape)
        if not isinstance(shape, dict) and len(shape) != leaf.ndim:
            raise UserError(f"Expected dynamic shape spec {shape} for `{name}` to have the same "
                            f"length as the actual tensor shape {leaf.shape} (expected "
                            f"{leaf.ndim}, but got {len(shape)} instead)")
        for dim, wanted in items:
            if isinstance(wanted, int):
                if wanted != leaf.shape[dim]:
                    raise ConstraintViolationError(
                        f"Static shape constraint of {wanted} does not match input size of "
                        f"{leaf.shape[dim]}, for {source}.size()[{dim}]")
                continue
            if isinstance(wanted, _DimHint) and wanted.type is _HintKind.STATIC:
                continue
            if wanted is not None:
                yield dim, wanted

    def _enter(self, places: list[tuple[int, int, Any]]) -> None:
        """One symbol for sizes that are equal by name."""
        plain = [p for p in places if not isinstance(p[2], _DerivedDim)]
        i, dim, wanted = (plain or places)[-1]
        size = self.inputs.leaves[i].shape[dim]
        root = wanted
        if isinstance(wanted, _DerivedDim):
            size, rest = divmod(size - wanted.shift, wanted.scale)
            root = wanted.root
            if rest:
                raise UserError(f"Expected shape[{dim}] = {size * wanted.scale + rest} of input "
                                f"Tensor to be of the form {wanted}, where {root.__name__} is an "
                                "integer")
        source = f"{self.inputs.source(i)}.size()[{dim}]"
        symbol = Symbol(self._name(source), size)
        self.sources[symbol] = source
        if isinstance(root, _DimHint):
            low, high = root.min, root.max
            self.ranges[symbol] = ValueRange(2 if low is None else low,
                                             int_oo if high is None else high)
            if root.type is _HintKind.AUTO:
                self.flexible.add(symbol)
            self.names[symbol] = source
            self.hinted[symbol] = None
            if size < 2:
                self._specialised(symbol, root)
                return
        else:
            self.ranges[symbol] = ValueRange(root.min, root.max)
            self.names[symbol] = root.__name__
        bounds = self.ranges[symbol]
        if not bounds.lower <= size <= bounds.upper:
            raise ConstraintViolationError(f"{size} not in range [{bounds.lower}, "
                                           f"{bounds.upper!r}]")
        for i, dim, wanted in places:
            if isinstance(wanted, _DerivedDim):
                terms: Any = ((wanted.scale, (symbol,)),)
                terms += ((wanted.shift, ()),) if wanted.shift else ()
                value: Any = Expression(terms)
            else:
                value = symbol
            here = self.inputs.leaves[i].shape[dim]
            expected = value.value({symbol: size}) if isinstance(value, Expression) else size
            if here != expected:
                raise UserError(
                    f"Constraints violated ({self.names[symbol]})! The sizes that are called "
                    f"{wanted} differ: {expected} and {here}")
            self.of[i, dim] = value

    def _specialised(self, symbol: Symbol, hint: _DimHint) -> None:
        del self.ranges[symbol], self.hinted[symbol]
        if hint.type is _HintKind.DYNAMIC:
            raise UserError(self.violated(symbol, [f"You marked {self.names[symbol]} as dynamic "
                                                   "but your code specialized it to be a constant "
                                                   f"({symbol.hint})."]))

    def _name(self, source: str) -> str:
        number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
        while number in self._taken:
            number += 1
        self._taken.add(number)
        return f"s{number}"

    @property
    def symbols(self) -> list[Symbol]:
        """The dynamic sizes."""
        return list(self.ranges)

    def drop(self, symbol: Symbol) -> None:
        """Make a size static."""
        del self.ranges[symbol]
        self.of = {place: value for place, value in self.of.items() if value != symbol}

    def unite(self, symbol: Symbol, partner: Symbol) -> None:
        """Let two sizes be one, that which comes later."""
        places = [next(place for place, value in self.of.items() if value == s)
                  for s in (symbol, partner)]
        gone, kept = (symbol, partner) if places[0] < places[1] else (partner, symbol)
        del self.ranges[gone]
        self.of = {place: kept if value == gone else value for place, value in self.of.items()}

    def shape(self, i: int, sizes: dict[Symbol, int] | None = None) -> tuple[Any, ...]:
        """The shape of an input: with symbols, or for certain sizes."""
        found = []
        for dim, n in enumerate(self.inputs.leaves[i].shape):
            value = self.of.get((i, dim), n)
            if sizes is not None and isinstance(value, Symbol):
                value = sizes[value]
            elif sizes is not None and isinstance(value, Expression):
                value = value.value(sizes)
            found.append(value)
        return tuple(found)

    def violated(self, symbol: Symbol, lines: list[str], fix: str = "") -> str:
        """The message of a size that cannot be dynamic."""
        name = self.names[symbol]
        said = "\n".join(f"  - {line}" for line in lines)
        return (f"Constraints violated ({name})! For more information, run with "
                f"TORCH_LOGS=\"+dynamic\".\n{said}\nSuggested fixes:\n"
                f"  {name} = {fix or symbol.hint}\n")


def _resized(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The values of a tensor, repeated, in another shape."""
    found = tensor.detach()
    for dim, size in enumerate(shape):
        if found.shape[dim] != size:
            places = flambeau.arange(size) % max(found.shape[dim], 1)
            found = found.index_select(dim, places)
    return found.requires_grad_(tensor.requires_grad)
