"""`map`: a function of each slice."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._higher_order_ops.utils import traced_call
from flambeau._library.higher_order import HigherOrderOperator
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.core.modes import shows_ops
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from flambeau.utils import _pytree


class MapImpl(HigherOrderOperator):
    """`map_impl(f, xs, args)`, of flat lists, along dimension 0."""

    def __init__(self) -> None:
        super().__init__("map_impl")

    def __call__(self, f: Callable[..., Any], xs: Any, pos_args: Any = ()) -> Any:
        return super().__call__(f, xs, pos_args)


map_impl = MapImpl()


@map_impl.py_impl(DispatchKey.CompositeImplicitAutograd)
def map_dense(f: Any, xs: Any, pos_args: Any = ()) -> list[Any]:
    """Run the function for each slice; gives the stacked results."""
    rows = [tuple(f(*[x[i] for x in xs], *pos_args)) for i in range(xs[0].shape[0])]
    return [flambeau.stack(column) for column in zip(*rows)]


@map_impl.py_impl(ProxyTorchDispatchMode)
def _traced(mode: Any, f: Any, xs: Any, pos_args: Any = ()) -> Any:
    from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    with disable_proxy_modes_tracing():
        examples = (*[x[0] for x in xs], *pos_args)
    return traced_call(mode, map_impl, {"body_graph": f}, {"body_graph": examples},
                       lambda body_graph: (body_graph, list(xs), list(pos_args)),
                       lambda: map_dense(f, xs, pos_args))


@map_impl.py_impl(FakeTensorMode)
def _fake(mode: Any, f: Any, xs: Any, pos_args: Any = ()) -> Any:
    with mode:
        return map_dense(f, xs, pos_args)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` of each slice `x` of `xs` along dimension 0, stacked.

    >>> import flambeau
    >>> map(lambda x, y: x + y, flambeau.arange(3), 10)
    tensor([10, 11, 12])
    """
    leaves, spec = _pytree.tree_flatten(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if any(not x.ndim or x.shape[0] != leaves[0].shape[0] for x in leaves):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes "
                           f"{[x.shape for x in leaves]}.")
    if leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    seen: list[Any] = []

    def flat(*values: Any) -> tuple[Any, ...]:
        n = len(leaves)
        found = f(_pytree.tree_unflatten(list(values[:n]), spec), *values[n:])
        results, shape = _pytree.tree_flatten(found)
        seen.append(shape)
        return tuple(results)
    found = (map_impl if shows_ops() else map_dense)(flat, leaves, args)
    return _pytree.tree_unflatten(list(found), seen[-1])


__all__ = ["MapImpl", "map", "map_dense", "map_impl"]
