"""`while_loop`: a function again and again."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau._higher_order_ops.utils import flat_function, traced_call
from flambeau._library.higher_order import HigherOrderOperator
from flambeau._subclasses.fake_tensor import FakeTensorMode, is_fake
from flambeau.core.modes import shows_ops
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from flambeau.utils import _pytree


class WhileLoopOp(HigherOrderOperator):
    """`while_loop(cond_fn, body_fn, carried, additional)`, of flat tuples."""

    def __init__(self) -> None:
        super().__init__("while_loop")

    def __call__(self, cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
                 carried_inputs: Any, additional_inputs: Any = (), /) -> Any:
        if not isinstance(carried_inputs, (tuple, list)):
            raise RuntimeError(f"carried_inputs must be a tuple or list, got "
                               f"{type(carried_inputs)}")
        return super().__call__(cond_fn, body_fn, carried_inputs, additional_inputs)


while_loop_op = WhileLoopOp()


@while_loop_op.py_impl(DispatchKey.CompositeImplicitAutograd)
def while_loop_dense(cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()
                     ) -> Any:
    """Run the loop."""
    carried = tuple(carried_inputs)
    while _truth(cond_fn(*carried, *additional_inputs)):
        found = body_fn(*carried, *additional_inputs)
        carried = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(carried) != len(carried_inputs):
            raise RuntimeError("body_fn should return the same number of elements as "
                               "carried_inputs")
    return carried


def _truth(value: Any) -> bool:
    return bool(value[0] if isinstance(value, tuple) else value)


@while_loop_op.py_impl(ProxyTorchDispatchMode)
def _traced(mode: Any, cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()
            ) -> Any:
    examples = (*carried_inputs, *additional_inputs)

    def run() -> Any:
        if any(isinstance(v, Tensor) and is_fake(v) for v in examples):
            return tuple(body_fn(*examples))
        return while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs)
    return traced_call(
        mode, while_loop_op,
        {"while_loop_cond_graph": lambda *a: (cond_fn(*a))[0] if isinstance(
            cond_fn(*a), tuple) else cond_fn(*a), "while_loop_body_graph": body_fn},
        {"while_loop_cond_graph": examples, "while_loop_body_graph": examples},
        lambda while_loop_cond_graph, while_loop_body_graph: (
            while_loop_cond_graph, while_loop_body_graph, tuple(carried_inputs),
            tuple(additional_inputs)), run)


@while_loop_op.py_impl(FakeTensorMode)
def _fake(mode: Any, cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()
          ) -> Any:
    with mode:
        return tuple(body_fn(*carried_inputs, *additional_inputs))


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
               ) -> Any:
    """`body_fn` of what it gave, while `cond_fn` of that holds, as one op for tracers.

    >>> import flambeau
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2),
    ...            (flambeau.tensor(0), flambeau.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    if not shows_ops():
        return _run(cond_fn, body_fn, carried_inputs)
    leaves, spec = _pytree.tree_flatten(tuple(carried_inputs))
    seen: list[Any] = []

    def condition(*flat: Any) -> Any:
        return cond_fn(*_pytree.tree_unflatten(list(flat), spec))
    found = while_loop_op(condition, flat_function(body_fn, spec, seen), tuple(leaves), ())
    return _pytree.tree_unflatten(list(found), seen[-1])


def _run(cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
                   carried_inputs: Any) -> Any:
    """The loop as the program says it."""
    carried: Any = tuple(carried_inputs)
    form, bare = _form(carried), False
    while cond_fn(*carried):
        given = body_fn(*carried)
        bare = not isinstance(given, tuple | list)
        carried = (given,) if bare else tuple(given)
        if _form(carried) != form:
            raise RuntimeError("Expected body_fn_output and carried_inputs to have same metadata "
                               f"but found: {_form(carried)} and {form}")
    return carried[0] if bare else carried


def _form(carried: Any) -> list[Any]:
    leaves, structure = _pytree.tree_flatten(carried)
    return [str(structure), *[(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor)
                              else type(leaf) for leaf in leaves]]


__all__ = ["WhileLoopOp", "while_loop", "while_loop_dense", "while_loop_op"]
