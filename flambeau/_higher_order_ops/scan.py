"""`scan`: a function along a dimension, with a state that is handed on."""
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


class ScanOp(HigherOrderOperator):
    """`scan(combine_fn, init, xs, additional)`, of flat lists, along dimension 0."""

    def __init__(self) -> None:
        super().__init__("scan")

    def __call__(self, combine_fn: Callable[..., Any], init: Any, xs: Any,
                 additional_inputs: Any = ()) -> Any:
        return super().__call__(combine_fn, init, xs, additional_inputs)


scan_op = ScanOp()


@scan_op.py_impl(DispatchKey.CompositeImplicitAutograd)
def generic_scan(combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> list[Any]:
    """Run the function for each slice of `xs`; gives the last states, then the stacked results."""
    states, count = list(init), len(init)
    rows: list[list[Any]] = []
    for i in range(xs[0].shape[0] if xs else 0):
        found = list(combine_fn(*states, *[x[i] for x in xs], *additional_inputs))
        states = found[:count]
        rows.append(found[count:])
    return [*states, *[flambeau.stack(column) for column in zip(*rows)]]


@scan_op.py_impl(ProxyTorchDispatchMode)
def _traced(mode: Any, combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    with disable_proxy_modes_tracing():
        examples = (*init, *[x[0] for x in xs], *additional_inputs)
    return traced_call(
        mode, scan_op, {"scan_combine_graph": lambda *a: list(combine_fn(*a))},
        {"scan_combine_graph": examples},
        lambda scan_combine_graph: (scan_combine_graph, list(init), list(xs),
                                    tuple(additional_inputs)),
        lambda: generic_scan(combine_fn, init, xs, additional_inputs))


@scan_op.py_impl(FakeTensorMode)
def _fake(mode: Any, combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    with mode:
        return generic_scan(combine_fn, init, xs, additional_inputs)


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0,
         reverse: bool = False) -> tuple[Any, Any]:
    """The last state, and the results one after the other, of `state, y = combine_fn(state, x)`
    for the slices `x` of `xs` along `dim`.

    >>> import flambeau
    >>> scan(lambda c, x: (c + x, c * x), flambeau.tensor(0.0), flambeau.arange(1.0, 4.0))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    states, state_spec = _pytree.tree_flatten(init)
    leaves, spec = _pytree.tree_flatten(xs)
    if not states:
        raise RuntimeError("scan() operator requires init leaves.")
    if any(not isinstance(v, Tensor) for v in (*states, *leaves)):
        raise RuntimeError(f"All xs leaves must be a Tensor but got {leaves}")
    if not leaves:
        return init, []
    moved = [flambeau.movedim(x, dim, 0) for x in leaves]
    moved = [x.flip(0) for x in moved] if reverse else moved
    seen: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        found = combine_fn(_pytree.tree_unflatten(list(values[:len(states)]), state_spec),
                           _pytree.tree_unflatten(list(values[len(states):]), spec))
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError("scan: combine_fn should return a tuple of the next state and a "
                               f"result; it gave {found}")
        state, y = found
        new, new_spec = _pytree.tree_flatten(state)
        results, result_spec = _pytree.tree_flatten(y)
        _check_states(states, new, state_spec, new_spec)
        seen.append(result_spec)
        return [*new, *results]
    found = (scan_op if shows_ops() else generic_scan)(flat, states, moved, ())
    results = [y.flip(0) for y in found[len(states):]] if reverse else found[len(states):]
    results = [flambeau.movedim(y, 0, dim) if y.ndim > dim else y for y in results]
    return (_pytree.tree_unflatten(list(found[:len(states)]), state_spec),
            _pytree.tree_unflatten(list(results), seen[-1]))


def _check_states(old: Any, new: Any, old_spec: Any, new_spec: Any) -> None:
    if old_spec != new_spec or any(a.shape != b.shape or a.dtype is not b.dtype
                                   for a, b in zip(old, new)):
        raise RuntimeError("Expected init and carry to have same metadata but found "
                           f"{[(t.shape, t.dtype) for t in old]} and "
                           f"{[(t.shape, t.dtype) for t in new]}")


__all__ = ["ScanOp", "generic_scan", "scan", "scan_op"]
