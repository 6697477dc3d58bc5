"""Tensors some of whose dimensions are bound to objects, and how ops run on them."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import flambeau
from flambeau.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


def has(dims: Iterable[Any], dim: Any) -> bool:
    """Is a dimension among others? `==` would compare what they stand for."""
    return any(dim is other for other in dims)


def united(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """All dimensions of several lists, each once, in order."""
    found: list[Any] = []
    for dims in lists:
        found += [d for d in dims if not has(found, d)]
    return found


class _Tensor:
    """A tensor with bound dimensions, or a dimension, which stands for its indices.

    What takes it apart or puts it together stands above it, and is added there: `places` adds
    indexing, `joining` adds `split`.
    """

    __getitem__: Callable[..., Any]
    __setitem__: Callable[..., Any]
    index: Callable[..., Any]
    split: Callable[..., Any]

    def _get_tensor(self) -> flambeau.Tensor:
        """The tensor, whose dimensions are those of `_get_levels`."""
        raise NotImplementedError("_get_tensor must be implemented by subclass")

    def _get_levels(self) -> list[Any]:
        """What each dimension of the tensor is: an object, or None for a position."""
        raise NotImplementedError("_get_levels must be implemented by subclass")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is flambeau.Tensor.__getitem__:
            return _Tensor.__getitem__(*args)
        if func is flambeau.Tensor.__setitem__:
            return _Tensor.__setitem__(*args)
        return run(func, args, kwargs or {})

    @property
    def dims(self) -> tuple[Any, ...]:
        """The bound dimensions."""
        return tuple([d for d in self._get_levels() if d is not None])

    @property
    def ndim(self) -> int:
        """The number of positions."""
        return sum(d is None for d in self._get_levels())

    def dim(self) -> int:
        """The number of positions."""
        return self.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the positions."""
        return tuple([n for n, d in zip(self._get_tensor().shape, self._get_levels())
                      if d is None])

    def size(self, dim: Any = None) -> Any:
        """The sizes of the positions, or the size of one, or of a dimension."""
        if dim is None:
            return self.shape
        return dim.size if isinstance(dim, _Tensor) else self.shape[dim]

    def order(self, *dims: Any) -> Any:
        """The tensor with these dimensions as its first positions, the other positions behind
        them; several in a tuple become one position. A plain tensor if none stays bound.

        Raises:
            ValueError: the tensor has no such dimension.
        """
        entries = []
        for d in dims:
            if isinstance(d, (tuple, list)):
                entries.append(tuple(d))
            else:
                entries += [(d,)] if isinstance(d, (int, _Tensor)) else [(each,) for each in d]
        wanted = [d for entry in entries for d in entry]
        levels = self._get_levels()
        rest = [p for p, d in enumerate(levels) if d is None]
        places = []
        for d in wanted:
            if isinstance(d, int):
                place = rest[d]                         # a position, moved to the front
            else:
                place = next((p for p, other in enumerate(levels) if other is d), -1)
            if place < 0 or place in places:
                raise ValueError(f"tensor does not contain dim {d} or it was specified twice")
            places.append(place)
        bound = [p for p, d in enumerate(levels) if d is not None and p not in places]
        rest = [p for p in rest if p not in places]
        result = self._get_tensor().permute(*bound, *places, *rest)
        if any(len(entry) != 1 for entry in entries):
            sizes = iter(result.shape[len(bound):])
            joined = [_product(next(sizes) for _ in entry) for entry in entries]
            result = result.reshape(*result.shape[:len(bound)], *joined, *sizes)
        return with_dims(result, [levels[p] for p in bound])

    def expand(self, *sizes: Any) -> Any:
        """The tensor repeated along dimensions that it lacks, or along positions."""
        flat = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        if not any(isinstance(s, _Tensor) for s in flat):
            return run(flambeau.Tensor.expand, (self, *flat), {})
        if not all(isinstance(s, _Tensor) for s in flat):
            raise ValueError("expand takes sizes, or dimensions, but not both")
        result = self._get_tensor()
        result = result.expand(*[d.size for d in flat], *result.shape)
        return Tensor(result, [*flat, *self._get_levels()])

    def __getattr__(self, name: str) -> Any:
        member = getattr(flambeau.Tensor, name, None)
        if name[:2] == "__" or member is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        if callable(member):
            return partial(_method, member, self)
        return run(getattr, (self, name), {})

    def item(self) -> Any:
        """Raises: there is a number for each index along the dimensions."""
        return run(lambda x: x.item(), (self,), {})

    def tolist(self) -> Any:
        """Raises: there are numbers for each index along the dimensions."""
        return run(lambda x: x.tolist(), (self,), {})

    def numpy(self) -> Any:
        """Raises: there is an array for each index along the dimensions."""
        return run(lambda x: x.numpy(), (self,), {})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind(0))

    def __bool__(self) -> bool:
        return bool(run(flambeau.Tensor.__bool__, (self,), {}))

    def __float__(self) -> float:
        return float(run(flambeau.Tensor.__float__, (self,), {}))

    def __int__(self) -> int:
        return int(run(flambeau.Tensor.__int__, (self,), {}))

    __hash__ = object.__hash__


def _method(member: Any, *args: Any, **kwargs: Any) -> Any:
    return run(member, args, kwargs)


def _operator(name: str) -> Callable[..., Any]:
    def operator(self: Any, *args: Any) -> Any:
        return run(getattr(flambeau.Tensor, name), (self, *args), {})

    operator.__name__ = name
    return operator


for _name in ("add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv "
              "rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror xor rxor lshift rshift "
              "neg pos invert abs eq ne lt le gt ge").split():
    if hasattr(flambeau.Tensor, f"__{_name}__"):
        setattr(_Tensor, f"__{_name}__", _operator(f"__{_name}__"))


class Tensor(_Tensor):
    """A tensor with bound dimensions: what indexing with dimensions gives."""

    def __init__(self, tensor: flambeau.Tensor, levels: Sequence[Any]):
        self._tensor, self._levels = tensor, list(levels)

    def _get_tensor(self) -> flambeau.Tensor:
        return self._tensor

    def _get_levels(self) -> list[Any]:
        return self._levels

    @staticmethod
    def from_positional(tensor: flambeau.Tensor, levels: Sequence[Any], has_device: bool = True
                        ) -> Any:
        """The tensor with these dimensions; positions count from the end, -1 the last."""
        names = [None if isinstance(d, int) else d for d in levels]
        return Tensor(tensor, names) if any(d is not None for d in names) else tensor

    def __repr__(self) -> str:
        positions = iter(range(self.ndim))
        names = [str(next(positions)) if d is None else repr(d) for d in self._levels]
        shown = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        return f"{self._tensor!r}\nwith dims={shown} sizes={tuple(self._tensor.shape)}"


class DimensionBindError(Exception):
    """A dimension is bound to two sizes, or its size cannot be known."""


class Dim(_Tensor):
    """A dimension. Its size is that of the first dimension of a tensor that it is bound to; in ops
    it stands for its indices, 0 to size - 1.

    >>> i = Dim("i", 3)
    >>> (i * 2).order(i)
    tensor([0, 2, 4])
    """

    def __init__(self, name: str, s: int = -1):
        self._name, self._size = name, -1
        if s >= 0:
            self.size = s

    @property
    def size(self) -> int:
        """The number of indices.

        Raises:
            ValueError: the dimension is not bound.
        """
        if self._size < 0:
            raise ValueError(f"dimension {self._name} is unbound")
        return self._size

    @size.setter
    def size(self, value: int) -> None:
        if self._size not in (-1, value):
            raise DimensionBindError(
                f"Dim '{self._name}' previously bound to a dimension of size {self._size} cannot "
                f"bind to a dimension of size {value}")
        self._size = value

    @property
    def is_bound(self) -> bool:
        """Has it a size?"""
        return self._size >= 0

    def _get_tensor(self) -> flambeau.Tensor:
        return flambeau.arange(self.size)

    def _get_levels(self) -> list[Any]:
        return [self]

    def __repr__(self) -> str:
        return self._name


class DimList:
    """Several dimensions whose number may be known only when they are bound."""

    def __init__(self, len_or_dims: int | Sequence[Any] | None = None, name: str | None = None):
        self._name, self._dims = name, None
        if isinstance(len_or_dims, int):
            self.bind_len(len_or_dims)
        elif len_or_dims is not None:
            self._dims = [d if isinstance(d, Dim) else Dim(f"{name or 'dim'}{n}", d)
                          for n, d in enumerate(len_or_dims)]

    _dims: list[Dim] | None

    def bind_len(self, size: int) -> None:
        """Say how many dimensions these are."""
        if self._dims is None:
            self._dims = [Dim(f"{self._name or 'dim'}{n}") for n in range(size)]
        elif len(self._dims) != size:
            raise DimensionBindError(f"Dimlist has size {len(self._dims)} but it is being bound "
                                     f"to size {size}")

    def bind(self, sizes: Sequence[int]) -> None:
        """Say how many dimensions these are, and their sizes."""
        self.bind_len(len(sizes))
        for d, size in zip(self._bound(), sizes):
            d.size = size

    @property
    def is_bound(self) -> bool:
        """Is it known how many dimensions these are?"""
        return self._dims is not None

    @property
    def size(self) -> int:
        """The number of dimensions."""
        return len(self)

    def _bound(self) -> list[Dim]:
        if self._dims is None:
            raise DimensionBindError("DimList not bound")
        return self._dims

    def __len__(self) -> int:
        return len(self._bound())

    def __getitem__(self, key: Any) -> Any:
        found = self._bound()[key]
        return tuple(found) if isinstance(found, list) else found

    def __iter__(self) -> Iterator[Dim]:
        return iter(self._bound())

    def __repr__(self) -> str:
        return f"*{self._name}" if self._dims is None else repr(tuple(self._dims))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _Tensor.__torch_function__(func, types, args, kwargs)


# ---- tensors with dimensions --------------------------------------------------------------------

def with_levels(tensor: flambeau.Tensor, levels: Sequence[Any]) -> Any:
    """A tensor whose dimensions are these, None for a position; itself if all are positions."""
    return tensor if all(level is None for level in levels) else Tensor(tensor, [*levels])


def with_dims(tensor: flambeau.Tensor, dims: Sequence[Any]) -> Any:
    """A tensor with its first dimensions bound to these; itself if there are none."""
    return with_levels(tensor, [*dims, *[None] * (tensor.ndim - len(dims))])


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


# ---- running an op ------------------------------------------------------------------------------

def run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of tensors for each index along the bound dimensions of its arguments."""
    args, kwargs = tree_map_only(DimList, tuple, (args, kwargs),
                                 is_leaf=lambda value: isinstance(value, DimList))
    over = _asked_dims(function, args, kwargs)
    if over:
        return _along(function, over, args, kwargs)
    flat, tree = tree_flatten((args, kwargs))
    bound = [(n, value) for n, value in enumerate(flat) if isinstance(value, _Tensor)]
    dims = united(value.dims for _, value in bound)
    held: Any = None

    def call(*tensors: flambeau.Tensor) -> Any:
        nonlocal held
        values = list(flat)
        for (n, _), tensor in zip(bound, tensors):
            values[n] = tensor
        all_args, all_kwargs = tree_unflatten(values, tree)
        results, spec = tree_flatten(function(*all_args, **all_kwargs))
        kept = [r for r in results if isinstance(r, flambeau.Tensor)]
        held = spec, [None if isinstance(r, flambeau.Tensor) else r for r in results]
        return tuple(kept) or tensors[:1]

    tensors = _over_each(call, dims, [value for _, value in bound])
    spec, others = held
    given = iter(tensors)
    return tree_unflatten([with_dims(next(given), dims) if value is None else value
                           for value in others], spec)


def _over_each(call: Any, dims: list[Any], values: list[Any]) -> Any:
    """`vmap` over each of the dimensions, the first outermost."""
    for d in reversed(dims):
        places = tuple([0 if has(value.dims, d) else None for value in values])
        call = flambeau.vmap(call, places, randomness="different")
    return call(*[leading(value, [d for d in dims if has(value.dims, d)]) for value in values])


def leading(value: Any, dims: Sequence[Any]) -> flambeau.Tensor:
    """The tensor of a value, with these of its dimensions, which must be all, in front."""
    levels = value._get_levels()
    places = [next(p for p, other in enumerate(levels) if other is d) for d in dims]
    return value._get_tensor().permute(
        *places, *[p for p, d in enumerate(levels) if d is None])


# ---- ops along a dimension ----------------------------------------------------------------------

@cache
def _place_of_dim(function: Any) -> int | None:
    """The position of a function's argument `dim`; None if it has none."""
    declaration = getattr(getattr(function, "twin", None), "schema", None)
    if declaration is not None and hasattr(declaration, "parameters"):
        names = [p.name for p in declaration.parameters]
    else:
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return 1 if hasattr(flambeau.Tensor, getattr(function, "__name__", "")) else None
        if "dim" not in names:
            return 1 if names[1:2] == ["args"] or names[:1] == ["args"] else None
    return names.index("dim") if "dim" in names else None


def _is_dims(value: Any) -> bool:
    return isinstance(value, Dim) or (
        isinstance(value, (tuple, list)) and bool(value) and isinstance(value[0], Dim))


def _asked_dims(function: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The dimensions that a call names as `dim=`."""
    value = kwargs.get("dim")
    if value is None and any(map(_is_dims, args[1:])):
        place = _place_of_dim(function)
        value = args[place] if place is not None and place < len(args) else None
    if not _is_dims(value):
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _along(function: Any, over: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """An op along bound dimensions: they are made positions, and bound again if they stay."""
    x = args[0] if args else kwargs["input"]
    for d in over:
        if not has(x.dims, d):
            raise ValueError(f"Tensor with dimensions {[str(e) for e in x.dims]} does not contain "
                             f"{d}")
    if kwargs.get("keepdim"):
        raise ValueError("cannot preserve first-class dimensions with keepdim=True")
    count, ordered = len(over), x.order(*over)
    one = isinstance(kwargs.get("dim"), _Tensor) or any(
        isinstance(a, _Tensor) and has(over, a) for a in args[1:])
    positions: Any = 0 if one else tuple(range(count))
    named = kwargs.get("dim") is not None
    kwargs = {**kwargs, "dim": positions} if named else kwargs
    place = None if named else _place_of_dim(function)
    args = [ordered, *[positions if n == place else a for n, a in enumerate(args[1:], 1)]]

    def bind(result: Any) -> Any:
        if result.ndim < ordered.ndim:                  # the dimensions are gone
            return result
        names = iter(over)
        levels = result._get_levels() if isinstance(result, _Tensor) else [None] * result.ndim
        return Tensor(result._get_tensor() if isinstance(result, _Tensor) else result,
                      [next(names, None) if d is None else d for d in levels])

    return tree_map_only((_Tensor, flambeau.Tensor), bind, run(function, args, kwargs)
                         if isinstance(ordered, _Tensor) else function(*args, **kwargs))
