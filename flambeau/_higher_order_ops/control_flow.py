"""Branches and loops on tensors' values, as functions: `cond` and `while_loop`.

They run what the program says, now; under `fx.symbolic_trace` a Python `if` would be needed, too.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: Any = ()) -> Any:
    """`true_fn(*operands)` if `pred`, else `false_fn(*operands)`.

    `pred` is a bool or a tensor of one element. The two functions should give results of the same
    form; only the one that is chosen runs.

    >>> import flambeau
    >>> flambeau.cond(flambeau.tensor(True), flambeau.sin, flambeau.cos, (flambeau.zeros(1),))
    tensor([0.])
    """
    from flambeau._higher_order_ops.cond import cond as as_op
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    for branch in (true_fn, false_fn):
        if not callable(branch):
            raise TypeError(f"{type(branch).__name__!r} object is not callable")
    return as_op(pred, true_fn, false_fn, operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
               carried_inputs: Any) -> Any:
    """Replace `carried_inputs` by `body_fn(*carried_inputs)` while `cond_fn` of them holds.

    What the body gives must have the shapes and types of what it got.

    >>> import flambeau
    >>> count, x = flambeau.tensor(0), flambeau.ones(2)
    >>> flambeau.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (count, x))
    (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError("Expect carried_inputs to be a tuple of tensors or numbers, got "
                           f"{type(carried_inputs).__name__}")
    from flambeau._higher_order_ops.while_loop import while_loop as as_op
    return as_op(cond_fn, body_fn, carried_inputs)


__all__ = ["cond", "while_loop"]
