"""Derivatives: what their formulas save, and how nodes turn gradients into gradients.

The names of a formula's parameters say what is saved: inputs (`self`, `other`), the `result`,
shapes and types of inputs (`self_shape`, `self_dtype`; `self_geometry` with strides, too, and
`self_by_columns`, whether it is laid out so), results by their names or numbers (`result1`), of
lists `tensors`, `tensors_from1`, `tensors_shapes` and `tensors_dtypes`, and the op's other
arguments. `grad` is the gradient, and in a `vjp` `needs` says which are wanted. A formula that does
not name a value never keeps it alive. Formulas call ops on tensors, so they can be differentiated,
batched and traced themselves.

A rule is the gradient of one tensor, or of a pointwise op the derivative, which `grad` is
multiplied by; a `vjp` gives all gradients at once. `csrc/autograd/apply.cpp` does the common cases.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import late_bound
from flambeau.core.autograd.graph import Node, node_class, unpack
from flambeau.core.calling import fast
from flambeau.core.op import Op
from flambeau.core.tensor import tensor_types


def parameters(formula: Any) -> tuple[str, ...]:
    """The names of a formula's parameters; a constant has none."""
    names = getattr(formula, "names", None)         # of a callable object
    if names is not None:
        return names
    code = getattr(formula, "__code__", None)
    return () if code is None else code.co_varnames[:code.co_argcount]


def infer_saved_values(op: Op) -> None:
    """Find out from the formulas what a node of `op` saves, and make the class of its nodes."""
    if unknown := op.rules.keys() - set(op.tensors):
        raise TypeError(f"op {op.name}: there are rules for {sorted(unknown)}, but its tensors are "
                        f"{op.tensors}")
    for name, formula in op.rules.items():
        if callable(formula) and op.kind != "pointwise" and "grad" not in parameters(formula):
            raise TypeError(f"op {op.name}: d_{name} is the gradient itself and has to name `grad`")
    formulas = [op.vjp] if op.vjp is not None else list(op.rules.values())
    wanted: list[str] = []
    for formula in formulas:
        wanted += [n for n in parameters(formula) if n not in ("grad", "needs", *wanted)]
    wanted += [n for n in op.__dict__.get("shows", ()) if n not in wanted]
    op.saved = tuple(wanted)
    kinds: list[str] = []
    plan: list[Any] = []
    for name in wanted:
        stem = name.removesuffix("_shape").removesuffix("_dtype").removesuffix("_shapes")
        if op.variadic and name == op.tensors[0]:
            kinds.append("tensors"), plan.append(("tensors", 0))
        elif op.variadic and name.startswith(op.tensors[0] + "_from"):
            kinds.append("tensors"), plan.append(("tensors", int(name[len(op.tensors[0]) + 5:])))
        elif name in op.tensors:
            kinds.append("tensor"), plan.append(("tensor", op.tensors.index(name)))
        elif name.startswith("result"):
            kinds.append("result"), plan.append(("result", int(name[6:] or 0)))
        elif op.schema is not None and name in op.schema.result_names:
            kinds.append("result"), plan.append(("result", op.schema.result_names.index(name)))
        elif op.variadic and name == op.tensors[0] + "_shapes":
            kinds.append("value"), plan.append(("shapes", None))
        elif op.variadic and name == op.tensors[0] + "_dtypes":
            kinds.append("value"), plan.append(("dtypes", None))
        elif stem != name and stem in op.tensors:
            kinds.append("value")
            plan.append(("shape" if name.endswith("shape") else "dtype", op.tensors.index(stem)))
        elif name.removesuffix("_geometry") in op.tensors:
            kinds.append("value")
            plan.append(("geometry", op.tensors.index(name.removesuffix("_geometry"))))
        elif name.removesuffix("_by_columns") in op.tensors:
            kinds.append("value")
            plan.append(("by_columns", op.tensors.index(name.removesuffix("_by_columns"))))
        elif name in op.params:
            first = 1 if op.variadic else len(op.tensors)
            kinds.append("value"), plan.append(("param", op.params.index(name) + first))
        else:
            raise TypeError(f"op {op.name}: the formula's parameter {name!r} is none of "
                            f"{op.tensors + op.params} or 'result'")
    op.plan = tuple(plan)
    # Which rules use a saved tensor: it is kept only if one of those inputs requires grad.
    op.users = tuple(
        None if op.vjp is not None or op.variadic else
        frozenset(i for i, t in enumerate(op.tensors) if name in parameters(op.rules.get(t)))
        for name in wanted)
    op.Backward = node_class(op.node_name, op=op, saved_names=op.saved, saved_kinds=tuple(kinds),
                             apply=make_apply(op), differentiated=differentiated(op))


def differentiated(op: Op) -> Any:
    """Which tensors an op has derivatives by, if not by all: no indices, no masks."""
    if op.variadic:
        first = [int(n.removeprefix(op.tensors[0] + "_from")) for n in op.nondiff]
        return range(first[0]) if first else None
    found = [i for i, t in enumerate(op.tensors) if (
        t not in op.nondiff if op.vjp is not None else op.rules.get(t) is not None)]
    return None if len(found) == len(op.tensors) else tuple(found)


def make_apply(op: Op) -> Callable[[Node, Any], Any]:
    """The method of `op`'s nodes that turns the output's gradient into the inputs'."""
    if op.vjp is not None:
        takes, several = _positions(op, op.vjp), op.returns is not None

        def apply(node: Node, grad: Any) -> Any:
            if several and type(grad) is not list:
                grad = [grad]           # of several results that happen to be one
            values = [grad, [e is not None for e in node.edges]]
            values += [unpack(node, i) for i in range(len(op.saved))]
            produced = op.vjp(*[values[i] for i in takes])
            return produced if type(produced) in (tuple, list) else (produced,)
        if len(op.tensors) > 1 or op.variadic or several or 1 in takes:
            return apply
        return fast.make_callable("apply", op, apply, ((op.vjp, _saved_positions(takes), None, 0),))

    rules = [(op.rules.get(t), _positions(op, op.rules.get(t)), i)
             for t, i in sorted([(t, i) for i, t in enumerate(op.tensors)])]    # as PyTorch's turns
    if op.kind == "pointwise":
        return _pointwise_apply(op, rules)
    several = op.returns is not None

    def apply_rules(node: Any, grad: Any) -> Any:
        if node.packed:
            node = late_bound.Opened(node)
        if several and type(grad) is list:
            grad = grad[0]              # the other results have no gradients
        produced: list[Any] = [None] * len(node.edges)
        for rule, takes, i in rules:
            if node.edges[i] is None or rule is None:
                continue
            produced[i] = multiply_by_constant(grad, rule) if not callable(rule) else rule(
                *[grad if place == 0 else unpack(node, place - 2) for place in takes])
        return produced
    if several or op.variadic:
        return apply_rules
    places = tuple([(rule, _saved_positions(takes), None, i) for rule, takes, i in rules])
    return fast.make_callable("apply", op, apply_rules, places)


def _pointwise_apply(op: Op, rules: list[Any]) -> Callable[[Node, Any], Any]:
    def apply(node: Any, grad: Any) -> Any:
        if node.packed:
            node = late_bound.Opened(node)
        produced: list[Any] = [None] * len(node.edges)
        for rule, takes, i in rules:
            if node.edges[i] is None or rule is None:
                continue
            if not callable(rule):
                produced[i] = multiply_by_constant(grad, rule)
                continue
            factor = rule(*[grad if place == 0 else unpack(node, place - 2) for place in takes])
            if 0 in takes:              # the gradient itself
                produced[i] = factor
                continue
            produced[i] = multiply_by_constant(grad, factor) if is_unit(rule, factor) else getattr(
                late_bound, chain_rule_op(rule))(
                    grad, factor if node.dtype.kind not in "cW" else conjugate(factor))
        return produced

    places = tuple([(rule, _saved_positions(takes), None if 0 in takes else chain_rule_op(rule), i)
                    for rule, takes, i in rules])
    return fast.make_callable("apply", op, apply, places)


def _saved_positions(takes: tuple[int, ...]) -> tuple[int, ...]:
    """Places among the saved values for those among (grad, needs, *saved)."""
    return tuple([i - 2 for i in takes])


def divides_by(divisor: Any) -> Any:
    """Marks a pointwise formula as a divisor: 1 over it is the derivative, and a gradient is
    divided by it, which rounds once where a product with the inverse rounds twice."""
    divisor.divides = True
    return divisor


def chain_rule_op(rule: Any) -> str:
    """The op of a gradient and of what its pointwise formula gives."""
    return "div" if hasattr(rule, "divides") else "mul"


def is_unit(rule: Any, factor: Any) -> bool:
    """Is the derivative that a formula gives only 1, 0 or -1?"""
    return type(factor) is int and -1 <= factor <= 1 and not hasattr(rule, "divides")


def conjugate(factor: Any) -> Any:
    if type(factor) in tensor_types:
        return late_bound.conjugated(factor) if factor._array.dtype.kind in "cW" else factor
    return factor.conjugate() if type(factor) is complex else factor


def _positions(op: Op, formula: Any) -> tuple[int, ...]:
    """Where each parameter of a formula stands among (grad, needs, *saved)."""
    order = {"grad": 0, "needs": 1} | {n: i + 2 for i, n in enumerate(op.saved)}
    return tuple([order[n] for n in parameters(formula)])


def multiply_by_constant(grad: Any, factor: Any) -> Any:
    """`grad` times a constant of a declaration."""
    if factor == 1:
        return grad
    if factor == -1:
        return late_bound.neg(grad)
    if factor == 0:
        return late_bound.zeros_like(grad)
    return late_bound.mul(grad, factor)
