"""Gradients, Jacobians and directional derivatives as functions of functions.

Reverse mode differentiates at *points*: each argument to be differentiated is replaced by an alias
of itself, whose gradient is then asked for. Aliases of different nested calls are different points
of the graph, so the derivatives never mix. Inside a `vmap` the alias lives at that level, so that
each slice has a gradient of its own.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from flambeau._support.own_methods import shown_as
from flambeau._support.scopes import Scope, inside, within
from flambeau.autograd.differentiate import as_flag, root_gradients
from flambeau.core.autograd import engine
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import deriving, grad_enabled, grad_mode, inference, levels
from flambeau.core.tensor import LEAF, Tensor, gradient_edge, tensor_types
from flambeau.core.type_info import preserve_format
from flambeau.func.batch import vmap
from flambeau.ops.factory.create import ones_like, zeros_like
from flambeau.ops.view.copying import graph_alias
from flambeau.transforms.batching import BatchLevel, lift
from flambeau.transforms.forward import ForwardLevel, check_tangent
from flambeau.utils._pytree import tree_flatten, tree_map, tree_unflatten, treespec_pprint


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
    result = within(grad_mode, True, graph_alias, tensor)
    if tensor.requires_grad:
        return result
    result._edge = LEAF
    result._is_point = True
    return result


def _check_inputs(leaves: list[Any]) -> None:
    """What reverse mode differentiates by are floating point tensors."""
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        if leaf._array.dtype not in FLOATING:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")


def _check_outputs(api: str, output: Any, leaves: list[Any]) -> None:
    if not leaves or output is None:
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got "
                           f"output = {[output] if output is None else output})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got "
                               f"unsupported type {type(leaf)}")


def _output_and_aux(api: str, output: Any) -> Any:
    """The two that a function with `has_aux` gives."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if "
                           "has_aux is True")
    for leaf in tree_flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return output


def _numbers(argnums: Any, count: int) -> tuple[int, ...]:
    """`argnums` as positions of positional arguments."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    found = tuple([n % count for n in numbers])
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def _gradients(outputs: list[Tensor], points: list[Tensor], weights: list[Any],
               recorded: bool, retain: bool = False) -> list[Tensor]:
    """Gradients at the points; zeros where nothing depends on them. Is the pass `recorded`, so that
    it has derivatives itself?"""
    recorded = recorded or any(p._edge is not LEAF for p in points) or _depth.get() > 1
    roots = []
    for output, weight in zip(outputs, weights):
        edge = None if output._edge is None else gradient_edge(output)
        if edge is not None:
            roots.append((edge, weight))
    if not roots:
        return [zeros_like(p.detach()) for p in points]
    found = engine.run(roots, retain or recorded, recorded, [gradient_edge(p) for p in points],
                       accumulate=False)
    return [zeros_like(p.detach()) if f is None else f for p, f in zip(points, found)]


# how many reverse-mode calls are running inside one another, on this thread
_depth: ContextVar[int] = ContextVar("reverse_mode_depth", default=0)


class _Reverse(Scope):
    """A reverse-mode call, which records."""

    def _changes(self) -> Any:
        return (_depth, _depth.get() + 1), (grad_mode, True), (inference, False), (deriving, True)


class _EnclosingLevels:
    """What is around a call: does anything there differentiate or transform what the call gives?"""

    def __init__(self, arguments: Any):
        around, self.records = () if inference.get() else levels.get(), grad_enabled()
        self.in_graph = self.records and (
            _depth.get() > 0 or any(_in_graph(x) for x in tree_flatten(arguments)[0]))
        self.differentiates = self.in_graph or (self.records and bool(around)) or any(
            not isinstance(level, BatchLevel) for level in around)

    def records_backward(self, outputs: list[Any]) -> bool:
        """Does anything there go through the graph of a backward pass from these outputs? Levels do
        not: forward mode derives each call as it is made."""
        return self.in_graph or (self.records and any(
            reaches_leaves([layer]) for x in outputs for layer in _layers(x)))

    def needs(self, tensors: list[Any]) -> bool:
        """Are the graphs of these tensors needed when the call has ended?"""
        return self.differentiates or (self.records and reaches_leaves(tensors))

    def free(self, tree: Any) -> Any:
        """Results outside the graph, where nothing needs it."""
        return tree_map(lambda x: x.detach() if _in_graph(x) and not self.needs([x]) else x, tree)


def _restore_inputs(tree: Any, stand_ins: list[Tensor], leaves: list[Any]) -> Any:
    """What a function gives back as it got it is what its caller gave."""
    given = {id(stand_in): leaf for stand_in, leaf in zip(stand_ins, leaves)}
    return tree_map(lambda x: given.get(id(x), x), tree)


def _layers(x: Any) -> Iterator[Tensor]:
    """A tensor, that of which it is a slice, and their tangents."""
    while isinstance(x, Tensor):
        yield x
        for tangent in (x._tangents or {}).values():
            if tangent is not None:
                yield from _layers(tangent)
        x = getattr(x, "_value", None)


def _in_graph(x: Any) -> bool:
    """Does a tensor, or that of which it is a slice, require gradients?"""
    if type(x) is Tensor and x._tangents is None:
        return x.requires_grad
    return any(layer.requires_grad for layer in _layers(x))


def reaches_leaves(tensors: list[Any]) -> bool:
    """Do gradients of these tensors reach a leaf other than points: one that a function closes
    over?"""
    stack = [gradient_edge(t) for t in tensors if t._edge is not None]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        if type(edge) in tensor_types:
            if not getattr(edge, "_is_point", False):
                return True
        elif edge is not None and edge.order not in seen:
            seen.add(edge.order)
            stack += edge.node.edges
    return False


def _scalar_and_aux(output: Any, has_aux: bool) -> Any:
    """What a function gives that is differentiated by all its inputs at once."""
    api, aux = "grad_and_value(f)(*args)", None
    if has_aux:
        output, aux = _output_and_aux(api, output)
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim():
        raise RuntimeError(f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with "
                           f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs "
                           "instead?")
    if output.is_complex():
        raise RuntimeError("grad can be implicitly created only for real scalar outputs "
                           f"but got {output.dtype}")
    return output, aux


def _as_function_of(func: Callable[..., Any], argnums: Any, args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`func` as a function of the arguments `argnums` alone, and these."""
    numbers = _numbers(argnums, len(args))

    def of_chosen(*values: Any) -> Any:
        replaced = list(args)
        for n, v in zip(numbers, values):
            replaced[n] = v
        return func(*replaced, **kwargs)
    return of_chosen, tuple([args[n] for n in numbers])


def grad_and_value(func: Callable[..., Any], argnums: Any = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """`func`'s gradient by its argument(s) `argnums`, and its value.

    `func` gives a scalar (with `has_aux`, a pair of it and anything else, passed through).
    """
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        of_chosen, chosen = _as_function_of(func, argnums, args, kwargs)
        outside = _EnclosingLevels(args)
        leaves, spec = tree_flatten(chosen)
        _check_inputs(leaves)
        def derive() -> Any:
            points = [point(leaf) for leaf in leaves]
            output, aux = _scalar_and_aux(of_chosen(*tree_unflatten(points, spec)), has_aux)
            aux = _restore_inputs(aux, points, leaves)
            found = _gradients([output], points, [ones_like(output, memory_format=preserve_format)],
                               outside.records_backward([output]), outside.needs([output]))
            return tree_unflatten(found, spec), output, aux
        gradients, output, aux = inside(_Reverse(), derive)
        gradients = gradients[0] if isinstance(argnums, int) else gradients
        gradients, output, aux = outside.free((gradients, output, aux))
        return (gradients, (output, aux)) if has_aux else (gradients, output)
    return wrapper


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
    outside = _EnclosingLevels(primals)
    leaves, spec = tree_flatten(primals)
    _check_inputs(leaves)
    def differentiable() -> Any:
        points = [point(leaf) for leaf in leaves]
        return points, func(*tree_unflatten(points, spec))
    points, output = inside(_Reverse(), differentiable)
    aux = None
    if has_aux:
        output, aux = _output_and_aux("vjp(f, *primals)", output)
    outputs, spec_out = tree_flatten(output)
    _check_outputs("vjp(f, *primals)", output, outputs)
    for one in outputs:
        if one._array.dtype not in FLOATING:
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex "
                               f"Tensors, got Tensor with dtype {one.dtype}")

    @shown_as("_vjp_with_argnums.<locals>.wrapper")
    def pullback(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
                 ) -> Any:
        weights, spec_given = tree_flatten(cotangents)
        if spec_given != spec_out:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree "
                               "structure of outputs to the function. cotangents: "
                               f"{treespec_pprint(spec_given)}, primal output: "
                               f"{treespec_pprint(spec_out)}")
        weights = root_gradients(tuple(outputs), weights)
        for flag in (retain_graph, create_graph):
            if flag is not None:
                as_flag(flag)
        now = _EnclosingLevels(weights)
        recorded = now.in_graph or outside.records_backward(outputs)
        found = within(grad_mode, True, _gradients, outputs, points, weights, recorded, True)
        result = tree_unflatten(found, spec)
        return result if now.records and outside.differentiates else now.free(result)

    value = outside.free(_restore_inputs(output, points, leaves))
    if not has_aux:
        return value, pullback
    return value, pullback, outside.free(_restore_inputs(aux, points, leaves))


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """`func(*primals)` and its derivative in the direction `tangents`.

    >>> import flambeau
    >>> jvp(flambeau.sin, (flambeau.zeros(2),), (flambeau.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    api = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{api}: Expected primals to be a tuple. E.g. it should be valid to "
                           "call f(*primals).")
    leaves, spec = tree_flatten(primals)
    directions, spec_given = tree_flatten(tangents)
    if spec != spec_given:
        raise RuntimeError(f"{api}: Expected primals and tangents to have the same python "
                           "structure. For example, if primals is a tuple of 3 tensors, tangents "
                           f"also must be. Got primals with structure {spec} and tangents with "
                           f"structure {spec_given}")
    if not leaves:
        raise RuntimeError(f"{api}: Expected primals to contain at least one Tensor.")
    for what, given in (("primals", leaves), ("tangents", directions)):
        for one in given:
            if not isinstance(one, Tensor):
                raise RuntimeError(f"{api}: Expected {what} to only contain Tensors, got "
                                   f"{type(one)}")
    for leaf, direction in zip(leaves, directions):
        check_tangent(leaf, direction)
    outside, level = _EnclosingLevels((primals, tangents)), ForwardLevel()
    duals = [graph_alias(leaf) for leaf in leaves]

    def dual_outputs() -> Any:
        for dual, direction in zip(duals, directions):
            level.set_tangent(dual, direction)
        output, aux = func(*tree_unflatten(duals, spec)), None
        if has_aux:
            output, aux = _output_and_aux(api, output)
        outputs, spec_out = tree_flatten(output)
        _check_outputs(api, output, outputs)
        return outputs, spec_out, aux, [level.tangent(o) for o in outputs]
    outputs, spec_out, aux, found = within(inference, False, inside, level, dual_outputs)
    if strict and any(t is None for t in found):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent "
                           "of the inputs. This is not allowed with strict=True.")
    values = [_without(o, level) for o in outputs]
    slopes = [zeros_like(v) if t is None else t for v, t in zip(values, found)]
    result = outside.free((tree_unflatten(values, spec_out), tree_unflatten(slopes, spec_out)))
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
    value = func(*primals)
    shapes = [p.shape for p in tree_flatten(primals)[0]]

    def slope(*tangents: Any) -> Any:
        for i, (shape, tangent) in enumerate(zip(shapes, tree_flatten(tangents)[0])):
            if tangent.shape != shape:
                raise RuntimeError(f"tangent:{i} with shape {tangent.shape} in flattened pytree "
                                   f"doesn't match the shape {shape} of the corresponding primal.")
        return jvp(func, primals, tangents)[1]
    return value, slope


# ---- Jacobians -----------------------------------------------------------------------------------


def _unit_vectors(leaves: list[Tensor]) -> list[Tensor]:
    """For each leaf, a stack of directions: together they are the unit vectors of all elements."""
    total, at, stacks = sum(leaf.numel() for leaf in leaves), 0, []
    for leaf in leaves:
        part = leaf.new_zeros(total, leaf.numel())
        part.diagonal(-at).fill_(1)
        stacks.append(part.view(total, *leaf.shape))
        at += leaf.numel()
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
        of_chosen, chosen = _as_function_of(func, argnums, args, kwargs)
        outside = _EnclosingLevels(args)
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
            rows = [c[i].view((*o.shape, *x.shape)) for c, x in zip(columns, inputs)]
            found = tree_unflatten(rows, spec_in)
            per_output.append(found[0] if isinstance(argnums, int) else found)
        result = outside.free(tree_unflatten(per_output, spec_out))
        return (result, answer[2]) if has_aux else result
    return wrapper


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """The Jacobian of `func` by its argument(s) `argnums`, in forward mode: column by column."""
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        of_chosen, chosen = _as_function_of(func, argnums, args, kwargs)
        inputs, spec_in = tree_flatten(chosen)
        outside = _EnclosingLevels(args)
        kept: dict[str, Any] = {}

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
            rows = [p.view((*shape, *x.shape)) for p, x in zip(parts, inputs)]
            tree = tree_unflatten(rows, spec_in)
            per_output.append(tree[0] if isinstance(argnums, int) else tree)
        result = outside.free(tree_unflatten(per_output, kept["spec"]))
        if has_aux:
            return result, tree_unflatten([a[0] for a in aux], kept["aux_spec"])
        return result
    return wrapper


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The second derivatives of `func`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)
