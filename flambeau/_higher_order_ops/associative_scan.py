"""`associative_scan`: all prefixes of a sequence, combined by an associative function."""
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


class AssociativeScanOp(HigherOrderOperator):
    """`associative_scan(combine_fn, xs, additional)`, of flat lists, along dimension 0."""

    def __init__(self) -> None:
        super().__init__("associative_scan")

    def __call__(self, combine_fn: Callable[..., Any], xs: Any, additional_inputs: Any = ()) -> Any:
        return super().__call__(combine_fn, xs, additional_inputs)


associative_scan_op = AssociativeScanOp()


def generic_associative_scan(operator: Callable[..., Any], leaves: list[Tensor], dim: int = 0,
                             additional_inputs: Any = ()) -> list[Tensor]:
    """Prefixes by halves: neighbours are combined, the sequence of those is scanned, and what is
    between them is filled in. So each level of log n combines many at once.

    Blelloch, "Prefix Sums and Their Applications", 1990.
    """
    count = leaves[0].shape[dim]
    if count < 2:
        return list(leaves)

    def every(x: Tensor, start: int, stop: int | None = None) -> Tensor:
        return x[(slice(None),) * dim + (slice(start, stop, 2),)]
    pairs = operator(*[every(x, 0, count - 1) for x in leaves], *[every(x, 1) for x in leaves])
    odd = generic_associative_scan(operator, list(pairs), dim, additional_inputs)
    rest = [every(x, 2) for x in leaves]
    left = [x.narrow(dim, 0, rest[0].shape[dim]) for x in odd]
    even = list(operator(*left, *rest)) if rest[0].shape[dim] else rest
    return [_interleaved(flambeau.cat([x.narrow(dim, 0, 1), e], dim), o, dim)
            for x, e, o in zip(leaves, even, odd)]


def _interleaved(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """a[0], b[0], a[1], b[1] …"""
    short = b.shape[dim]
    both = flambeau.stack([a.narrow(dim, 0, short), b], dim + 1).flatten(dim, dim + 1)
    return both if a.shape[dim] == short else flambeau.cat([both, a.narrow(dim, short, 1)], dim)


@associative_scan_op.py_impl(DispatchKey.CompositeImplicitAutograd)
def _run(combine_fn: Any, xs: Any, additional_inputs: Any = ()) -> list[Tensor]:
    """The function of single elements, for all at once by vmap."""
    batched = flambeau.vmap(lambda *values: tuple(combine_fn(*values, *additional_inputs)))
    return generic_associative_scan(batched, list(xs))


@associative_scan_op.py_impl(ProxyTorchDispatchMode)
def _traced(mode: Any, combine_fn: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    with disable_proxy_modes_tracing():
        first, second = [x[0] for x in xs], [x[0].clone() for x in xs]
    return traced_call(
        mode, associative_scan_op,
        {"associative_scan_combine_graph": lambda *a: list(combine_fn(*a))},
        {"associative_scan_combine_graph": (*first, *second, *additional_inputs)},
        lambda associative_scan_combine_graph: (associative_scan_combine_graph, list(xs),
                                                tuple(additional_inputs)),
        lambda: _run(combine_fn, xs, additional_inputs))


@associative_scan_op.py_impl(FakeTensorMode)
def _fake(mode: Any, combine_fn: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    with mode:
        return [x.clone() for x in xs]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int,
                     reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """`combine_fn` over all prefixes of `xs` along `dim`, in a number of steps that grows with the
    logarithm; `reverse` over all suffixes. `combine_mode="generic"` is for functions that do more
    than compute element by element, and for the CPU.

    >>> import flambeau
    >>> associative_scan(lambda a, b: a + b, flambeau.arange(5), 0, combine_mode="generic")
    tensor([ 0,  1,  3,  6, 10])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got "
                         f"{combine_mode}")
    leaves, spec = _pytree.tree_flatten(xs)
    if combine_mode == "pointwise" and not all(x.device.type in ("cuda", "xpu") for x in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or "
                         "XPU")
    if not leaves:
        raise ValueError("associative_scan: xs must have at least one tensor")
    if any(not isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    moved = [flambeau.movedim(x, dim, 0) for x in leaves]
    if any(x.ndim == 0 for x in leaves) or len({x.shape[0] for x in moved}) > 1:
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan "
                         "dimension > 0")
    moved = [x.flip(0) for x in moved] if reverse else moved

    def flat(*values: Any) -> list[Any]:
        n = len(leaves)
        found = combine_fn(_pytree.tree_unflatten(list(values[:n]), spec),
                           _pytree.tree_unflatten(list(values[n:2 * n]), spec))
        results, shape = _pytree.tree_flatten(found)
        assert shape == spec, (f"combine_fn was given pytrees like {spec}, but has not "
                               f"returned one like these: {shape}")
        return results
    found = (associative_scan_op if shows_ops() else _run)(flat, moved, ())
    found = [y.flip(0) for y in found] if reverse else found
    return _pytree.tree_unflatten([flambeau.movedim(y, 0, dim) for y in found], spec)


__all__ = ["AssociativeScanOp", "associative_scan", "associative_scan_op",
           "generic_associative_scan"]
