"""Views of functional tensors: how they are taken, and how a write goes back through them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor

_aten = flambeau.ops.aten


class View:
    """A call of a view op; of one that gives several, `index` says which of them is meant. With
    `copies` it is written down as the op that copies."""

    def __init__(self, func: Any, args: Any, kwargs: dict[str, Any], copies: bool = False,
                 index: int | None = None):
        self.func, self.args, self.kwargs, self.copies, self.index = \
            func, tuple(args), kwargs, copies, index

    def part(self, index: int) -> View:
        """The same call, of which one of the results is meant."""
        return View(self.func, self.args, self.kwargs, self.copies, index)

    def _op(self, func: Any) -> Any:
        if self.copies:
            packet = getattr(_aten, f"{func._opname}_copy", None)
            if packet is not None and func._overloadname in packet.overloads():
                return packet.overload(func._overloadname)
        return func

    def call(self, base: Tensor) -> Any:
        """All that the op gives."""
        return self._op(self.func)(base, *self.args, **self.kwargs)

    def of(self, base: Tensor) -> Tensor:
        """The view of a tensor."""
        found = self.call(base)
        return found if self.index is None else found[self.index]

    def put_back(self, base: Tensor, value: Tensor) -> Tensor:
        """`base` with `value` where the view looks."""
        way = _ways.get(self.func._opname)
        if way is None or (self.func._opname == "view" and self.func._overloadname == "dtype"):
            return _by_places(base, self.of, value)
        given = {a.name: a.default_value for a in self.func._schema.arguments}
        given |= dict(zip([*given][1:], self.args)) | self.kwargs
        return way(self, base, value, given)

    def back(self, func: Any, *args: Any) -> Tensor:
        return self._op(func)(*args)


def _by_places(base: Tensor, view: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """For any view: which elements it shows is found out on their numbers."""
    if base.is_meta:
        return base.clone()
    places = view(flambeau.arange(base.numel()).view(base.shape))
    flat = base.flatten().index_copy(0, places.flatten(), value.flatten().to(base.dtype))
    return flat.view(base.shape)


_Way = Callable[[View, Tensor, Tensor, dict[str, Any]], Tensor]
_ways: dict[str, _Way] = {}


def _way_back(*names: str) -> Callable[[_Way], _Way]:
    """Enter how writes go back through views by these ops."""
    def enter(way: _Way) -> _Way:
        _ways.update(dict.fromkeys(names, way))
        return way
    return enter


@_way_back("select", "slice", "diagonal", "as_strided")
def _scattered(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    """The op that writes back takes what the view takes."""
    scatter = getattr(_aten, f"{view.func._opname}_scatter").default
    return scatter(base, value, *view.args, **view.kwargs)


@_way_back("split", "split_with_sizes")
def _piece(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    """One of the pieces into which a dimension was cut."""
    dim, index = given["dim"], view.index or 0
    start = sum(given["split_sizes"][:index]) if "split_sizes" in given \
        else index * given["split_size"]
    return _aten.slice_scatter.default(base, value, dim, start, start + value.shape[dim])


@_way_back("unbind")
def _one_of_all(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    return _aten.select_scatter.default(base, value, given["dim"], view.index)


@_way_back("permute")
def _permuted(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    dims = [d % base.dim() for d in given["dims"]]
    return view.back(_aten.permute.default, value, [dims.index(d) for d in range(len(dims))])


@_way_back("squeeze")
def _unsqueezed(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    dims = given.get("dim", range(base.dim()))
    for dim in sorted(d % base.dim() for d in ([dims] if isinstance(dims, int) else dims)):
        if base.shape[dim] == 1:
            value = view.back(_aten.unsqueeze.default, value, dim)
    return value


@_way_back("unsqueeze")
def _squeezed(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    return view.back(_aten.squeeze.dim, value, given["dim"])


@_way_back("view", "reshape", "_unsafe_view", "flatten")
def _reshaped(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    return view.back(_aten.view.default, value, list(base.shape))


@_way_back("t", "transpose")
def _turned_back(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    return view.back(view.func, value, *view.args)


@_way_back("alias", "detach")
def _as_it_is(view: View, base: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    return value


__all__ = ["View"]
