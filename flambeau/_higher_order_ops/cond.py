"""`cond`: one of two functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._higher_order_ops.utils import check_tensors, flat_function, traced_call
from flambeau._library.higher_order import HigherOrderOperator
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.core.modes import shows_ops
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from flambeau.transforms.batching import BatchedTensor
from flambeau.utils import _pytree


class CondOp(HigherOrderOperator):
    """`cond(pred, true_fn, false_fn, operands)`, of a flat tuple of operands."""

    def __init__(self) -> None:
        super().__init__("cond")

    def __call__(self, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
                 operands: Any) -> Any:
        return super().__call__(pred, true_fn, false_fn, operands)


cond_op = CondOp()


@cond_op.py_impl(DispatchKey.CompositeImplicitAutograd)
def _run(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    if isinstance(pred, BatchedTensor):         # both, and of each slice what it asks for
        chosen, other = true_fn(*operands), false_fn(*operands)
        return _pytree.tree_map(lambda a, b: flambeau.where(pred.reshape((1,) * a.ndim), a, b)
                                if a.ndim else flambeau.where(pred, a, b), chosen, other)
    return (true_fn if pred else false_fn)(*operands)


@cond_op.py_impl(ProxyTorchDispatchMode)
def _traced(mode: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    examples = tuple(operands)
    return traced_call(
        mode, cond_op, {"true_graph": true_fn, "false_graph": false_fn},
        {"true_graph": examples, "false_graph": examples},
        lambda true_graph, false_graph: (pred, true_graph, false_graph, examples),
        lambda: _either(pred, true_fn, false_fn, operands))


def _either(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    from flambeau._subclasses.fake_tensor import is_fake
    if isinstance(pred, Tensor) and is_fake(pred):
        return true_fn(*operands)
    return (true_fn if pred else false_fn)(*operands)


@cond_op.py_impl(FakeTensorMode)
def _fake(mode: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    with mode:
        found, other = true_fn(*operands), false_fn(*operands)
    for a, b in zip(_pytree.tree_leaves(found), _pytree.tree_leaves(other)):
        if isinstance(a, Tensor) and (a.shape != b.shape or a.dtype is not b.dtype):
            raise RuntimeError("When merging two branches' output in torch.cond, expect the "
                               f"outputs to be alike but got {a} and {b}")
    return found


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
         ) -> Any:
    """`true_fn(*operands)` if `pred`, else `false_fn(*operands)`, as one op for tracers.

    >>> import flambeau
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> gm = make_fx(lambda x: cond(x.sum() > 0, flambeau.sin, flambeau.cos, (x,)))(
    ...     flambeau.ones(2))
    >>> gm(-flambeau.ones(2))
    tensor([0.5403, 0.5403])
    """
    if not isinstance(pred, (bool, int, float)):
        if not isinstance(pred, (Tensor, flambeau.SymBool)):
            raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
        if not callable(true_fn) or not callable(false_fn):
            raise RuntimeError("Expect both branches to be callable.")
    check_tensors(operands, "operands")
    leaves, spec = _pytree.tree_flatten(tuple(operands))
    if not shows_ops() and not isinstance(pred, BatchedTensor):
        return _run(pred, true_fn, false_fn, operands)
    seen: list[Any] = []
    found = cond_op(pred, flat_function(true_fn, spec, seen), flat_function(false_fn, spec, seen),
                    tuple(leaves))
    return _pytree.tree_unflatten(list(found), seen[-1])


__all__ = ["CondOp", "cond", "cond_op"]
