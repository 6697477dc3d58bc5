"""Gradients, Jacobians and directional derivatives as functions of functions.

Reverse mode differentiates at *points*: each argument to be differentiated is replaced by an alias
of itself, whose gradient is then asked for. Aliases of different nested calls are different points
of the graph, so the derivatives never mix. Inside a `vmap` the alias lives at that level, so that
each slice has a gradient of its own.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flambeau.autograd.grad_mode import enable_grad
from flambeau.core import engine
from flambeau.core.modes import levels
from flambeau.core.tensor import LEAF, Tensor, basis, gradient_edge
from flambeau.func.batch import vmap
from flambeau.transforms.batching import BatchLevel, lift
from flambeau.transforms.forward import ForwardLevel
from flambeau.utils._pytree import tree_flatten, tree_map, tree_unflatten


def point(tensor: Tensor) -> Tensor:
    """An alias of `tensor` at which one derivative is taken."""
    stack = levels.get()
    batch = next((lv for lv in reversed(stack) if isinstance(lv, BatchLevel)), None)
    if batch is not None:
        inner = stack[stack.index(batch) + 1:]
        tangents = {lv: lv.tangent(tensor) for lv in inner if isinstance(lv, ForwardLevel)}
        tensor = lift(tensor, batch)
        for level, tangent in tangents.items():
            level.set_tangent(tensor, tangent)
    with enable_grad():
        if tensor.requires_grad:
            return basis.graph_alias(tensor)
        result = basis.graph_alias(tensor)
    result._edge = LEAF
    return result


def _must_be_tensors(name: str, leaves: list[Any], what: str) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: Expected {what} to be tensors, got {type(leaf)}")


def _gradients(outputs: list[Tensor], points: list[Tensor], weights: list[Any],
               retain: bool = False) -> list[Tensor]:
    """Gradients at the points; zeros where nothing depends on them."""
    outer = any(p._edge is not LEAF for p in points) or bool(levels.get()) or retain \
        or _depth.depth > 1
    roots = []
    for output, weight in zip(outputs, weights):
        edge = None if output._edge is None else gradient_edge(output)
        if edge is not None:
            roots.append((edge, weight))
    if not roots:
        return [basis.zeros_like(p.detach()) for p in points]
    found = engine.run(roots, outer, outer, [gradient_edge(p) for p in points], accumulate=False)
    return [basis.zeros_like(p.detach()) if f is None else f for p, f in zip(points, found)]


class _Depth:
    """How many reverse-mode calls are running inside one another, on this thread."""

    _running: ContextVar[int] = ContextVar("reverse_mode_depth", default=0)

    @property
    def depth(self) -> int:
        return self._running.get()

    def __enter__(self) -> None:
        self._running.set(self.depth + 1)

    def __exit__(self, *exception: Any) -> None:
        self._running.set(self.depth - 1)


_depth = _Depth()


def _free(tree: Any, outer: bool) -> Any:
    """Results outside the graph, unless an outer derivative needs it."""
    if outer:
        return tree
    return tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)


def grad_and_value(func: Callable[..., Any], argnums: Any = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """`func`'s gradient by its argument(s) `argnums`, and its value.

    `func` gives a scalar (with `has_aux`, a pair of it and anything else, passed through).
    """
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        numbers = tuple([n % len(args) for n in numbers])
        chosen = tuple(args[n] for n in numbers)
        outer = _outer_needs(chosen, args)
        leaves, spec = tree_flatten(chosen)
        _must_be_tensors("grad", leaves, "the arguments to differentiate")
        with _depth, enable_grad():
            points = [point(leaf) for leaf in leaves]
            replaced = list(args)
            for n, value in zip(numbers, tree_unflatten(points, spec)):
                replaced[n] = value
            output = func(*replaced, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError("grad_and_value(f)(*args): output of function f should be a "
                                       "tuple: (output, aux) if has_aux is True")
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a "
                                   f"tensor, got {type(output)}")
            if output.dim():
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar "
                                   f"tensor, got tensor with {output.dim()} dims. Maybe you wanted "
                                   "to use the vjp or jacrev APIs instead?")
            found = _gradients([output], points, [basis.ones_like(output.detach())])
        gradients = tree_unflatten(found, spec)
        gradients = gradients[0] if isinstance(argnums, int) else gradients
        gradients, output, aux = (_free(x, outer) for x in (gradients, output, aux))
        return (gradients, (output, aux)) if has_aux else (gradients, output)
    return wrapper


def _outer_needs(chosen: Any, everything: Any) -> bool:
    """Does anything outside this call differentiate or transform what it gives?"""
    return bool(levels.get()) or _depth.depth > 0 or any(
        isinstance(x, Tensor) and x.requires_grad for x in tree_flatten(everything)[0])


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """`func`'s gradient by its argument(s) `argnums`; `func` gives a scalar.

    >>> import flambeau
    >>> grad(grad(flambeau.sin))(flambeau.tensor(0.5))
    tensor(-0.4794)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = both(*args, **kwargs)
        if has_aux:
            gradient, (_, aux) = result
            return gradient, aux
        return result[0]
    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`func(*primals)` and the function that maps a gradient of it to gradients of `primals`.

    >>> import flambeau
    >>> value, pullback = vjp(flambeau.sin, flambeau.zeros(2))
    >>> pullback(flambeau.ones(2))
    (tensor([1., 1.]),)
    """
    outer = _outer_needs(primals, primals)
    leaves, spec = tree_flatten(primals)
    _must_be_tensors("vjp(f, *primals)", leaves, "all primals")
    with _depth, enable_grad():
        points = [point(leaf) for leaf in leaves]
        output = func(*tree_unflatten(points, spec))
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError("vjp(f, *primals): output of function f should be a tuple: (output, "
                               "aux) if has_aux is True")
        output, aux = output
    outputs, spec_out = tree_flatten(output)
    _must_be_tensors("vjp(f, *primals)", outputs, "f(*primals)")

    def pullback(*cotangents: Any, retain_graph: bool = True, create_graph: bool = True) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        weights, spec_given = tree_flatten(given)
        if len(weights) != len(outputs):
            raise RuntimeError(f"Expected pytree structure of cotangents to be the same as pytree "
                               f"structure of outputs to the function. cotangents: {spec_given}, "
                               f"primal output: {spec_out}")
        with enable_grad():
            found = _gradients(outputs, points, weights, retain=True)
        result = tree_unflatten(found, spec)
        keep = outer or any(w.requires_grad for w in weights) or bool(levels.get())
        return _free(result, keep)

    value = _free(output, outer)
    return (value, pullback, _free(aux, outer)) if has_aux else (value, pullback)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """`func(*primals)` and its derivative in the direction `tangents`.

    >>> import flambeau
    >>> jvp(flambeau.sin, (flambeau.zeros(2),), (flambeau.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to be tuples, "
                           f"got {type(primals)} and {type(tangents)}")
    leaves, spec = tree_flatten(primals)
    directions, _ = tree_flatten(tangents)
    if len(leaves) != len(directions):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the "
                           "same python structure.")
    _must_be_tensors("jvp(f, primals, tangents)", leaves + directions, "primals and tangents")
    level = ForwardLevel()
    duals = [basis.graph_alias(leaf) for leaf in leaves]
    with level:
        for dual, direction in zip(duals, directions):
            level.set_tangent(dual, direction)
        output = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            output, aux = output
        outputs, spec_out = tree_flatten(output)
        _must_be_tensors("jvp(f, primals, tangents)", outputs, "f(*primals)")
        found = [level.tangent(o) for o in outputs]
    values = [_without(o, level) for o in outputs]
    slopes = [basis.zeros_like(v) if t is None else t for v, t in zip(values, found)]
    result = tree_unflatten(values, spec_out), tree_unflatten(slopes, spec_out)
    if has_aux:
        return (*result, tree_map(
            lambda x: _without(x, level) if isinstance(x, Tensor) else x, aux))
    return result


def _without(tensor: Tensor, level: ForwardLevel) -> Tensor:
    """`tensor` without its tangent at a level that has ended."""
    if tensor._tangents is not None:
        tensor._tangents.pop(level, None)
    return tensor


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """`func(*primals)` and the linear function that maps tangents of `primals` to its tangent."""
    value, _ = jvp(func, primals, tree_map(basis.zeros_like, primals))

    def slope(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]
    return value, slope


# ---- Jacobians -----------------------------------------------------------------------------------


def _unit_vectors(leaves: list[Tensor]) -> list[Tensor]:
    """For each leaf, a stack of directions: together they are the unit vectors of all elements."""
    from flambeau.ops.create import eye, zeros
    total, at, stacks = sum(leaf.numel() for leaf in leaves), 0, []
    for leaf in leaves:
        n = leaf.numel()
        part = zeros(total, n, dtype=leaf.dtype)
        part[at:at + n] = eye(n, dtype=leaf.dtype)
        stacks.append(part.view(total, *leaf.shape))
        at += n
    return stacks


def jacrev(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False,
           chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """The Jacobian of `func` by its argument(s) `argnums`, in reverse mode: row by row.

    >>> import flambeau
    >>> jacrev(flambeau.sin)(flambeau.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        chosen = tuple(args[n] for n in numbers)
        outer = _outer_needs(chosen, args)

        def of_chosen(*values: Any) -> Any:
            replaced = list(args)
            for n, v in zip(numbers, values):
                replaced[n] = v
            return func(*replaced, **kwargs)
        answer = vjp(of_chosen, *chosen, has_aux=has_aux)
        output, pullback = answer[0], answer[1]
        outputs, spec_out = tree_flatten(output)
        units = _unit_vectors(outputs)
        flat = vmap(lambda *rows: tuple(tree_flatten(pullback(tree_unflatten(rows, spec_out)))[0]),
                    chunk_size=chunk_size)(*units)
        inputs, spec_in = tree_flatten(chosen)
        columns = [f.split([o.numel() for o in outputs]) for f in flat]
        per_output = []
        for i, o in enumerate(outputs):
            rows = [c[i].reshape(*o.shape, *x.shape) for c, x in zip(columns, inputs)]
            found = tree_unflatten(rows, spec_in)
            per_output.append(found[0] if isinstance(argnums, int) else found)
        result = _free(tree_unflatten(per_output, spec_out), outer)
        return (result, answer[2]) if has_aux else result
    return wrapper


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """The Jacobian of `func` by its argument(s) `argnums`, in forward mode: column by column."""
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        chosen = tuple(args[n] for n in numbers)
        inputs, spec_in = tree_flatten(chosen)
        kept: dict[str, Any] = {}

        def of_chosen(*values: Any) -> Any:
            replaced = list(args)
            for n, v in zip(numbers, values):
                replaced[n] = v
            return func(*replaced, **kwargs)

        def column(*directions: Any) -> Any:
            answer = jvp(of_chosen, chosen, tree_unflatten(directions, spec_in), has_aux=has_aux)
            slopes, kept["spec"] = tree_flatten(answer[1])
            if has_aux:
                aux, kept["aux_spec"] = tree_flatten(answer[2])
                return tuple(slopes), tuple(aux)
            return tuple(slopes)
        found = vmap(column, randomness=randomness)(*_unit_vectors(inputs))
        slopes, aux = found if has_aux else (found, None)
        per_output = []
        for slope in slopes:
            shape = slope.shape[1:]
            parts = slope.movedim(0, -1).split([x.numel() for x in inputs], -1)
            rows = [p.reshape(*shape, *x.shape) for p, x in zip(parts, inputs)]
            tree = tree_unflatten(rows, spec_in)
            per_output.append(tree[0] if isinstance(argnums, int) else tree)
        result = tree_unflatten(per_output, kept["spec"])
        if has_aux:
            return result, tree_unflatten([a[0] for a in aux], kept["aux_spec"])
        return result
    return wrapper


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The second derivatives of `func`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)
