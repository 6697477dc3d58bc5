"""What an op is, and the one path that a call takes once its arguments are canonical.

An op has a kernel (arrays in, arrays out) and a derivative; its *kind* gives the rest. Both are
declared together with PyTorch's schema, in `flambeau/dispatch`:

    mul = pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor", kernel=kernels.multiply,
                    d_self=lambda other: other, d_other=lambda self: self)

or, in families that have no schemas yet, by a function that makes arguments canonical:

    @primitive(kernel, d_self=lambda grad, self_shape, dim: ...)
    def cumsum(input, dim, *, dtype=None):          # what users call: signature, documentation
        return input, wrap_dim(dim, input.ndim)     # what the kernel and the formulas get

The names of a formula's parameters say what is saved: inputs (`self`, `other`), the `result`,
shapes and types of inputs (`self_shape`, `self_dtype`), and the op's other arguments. A formula
that does not name a value never keeps it alive. Formulas call ops on tensors, so they can be
differentiated, batched and traced themselves.

The path of a call: (1) does a level take over? (2) the arrays of the tensors, promoted and checked;
(3) the kernel; (4) if an input requires grad, a node. Each op has three callables made from one
source: the public one, `op.call` (canonical arguments, levels respected) and `op.direct` (canonical
arguments, nothing is asked).
"""
from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import asarray, ndarray

from flambeau._call_guards import method as as_method
from flambeau._support.source_locations import counter_of
from flambeau.core import dtypes, fast, late_bound, overrides
from flambeau.core.dtypes import FLOATING
from flambeau.core.graph import (
    Node,
    Output,
    next_order,
    node_class,
    packers,
    save_input,
    save_result,
    unpack,
)
from flambeau.core.modes import grad_enabled, intercept, intercept_canonical, interceptors
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import Size
from flambeau.core.tensor import (
    LOOKUP,
    Tensor,
    gradient_edge,
    new_tensor,
    new_view,
    plain,
    tensor_types,
    wrap,
)
from flambeau.kernels.refused import kernel_of, no_kernel

public: dict[str, dict[str, Any]] = {"torch": {}}  # the public functions of each namespace
SCALARS = frozenset({float, int, bool, complex})


class Table(dict[str, "Op"]):
    """Every op, by name. One that is declared by its schema is made when it is looked for, or when
    all are."""

    def __init__(self) -> None:
        super().__init__()
        self.declared: dict[str, Callable[[], Op]] = {}

    def make_all(self) -> None:
        for name in [*self.declared]:
            self[name]

    def __missing__(self, name: str) -> Op:
        if name not in self.declared:
            raise KeyError(name)
        self[name] = made = self.declared.pop(name)()
        return made

    def __contains__(self, name: Any) -> bool:
        return super().__contains__(name) or name in self.declared

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401

    def __iter__(self) -> Any:
        self.make_all()
        return super().__iter__()

    def __len__(self) -> int:
        return super().__len__() + len(self.declared)

    def keys(self) -> Any:
        self.make_all()
        return super().keys()

    def values(self) -> Any:
        self.make_all()
        return super().values()

    def items(self) -> Any:
        self.make_all()
        return super().items()

    def __delitem__(self, name: str) -> None:
        if self.declared.pop(name, None) is None:
            super().__delitem__(name)


table = Table()


class AnyTensor:
    """What `direct` calls take: tensors of whatever subclass."""

    def __contains__(self, cls: type) -> bool:
        return cls in tensor_types


ANY = AnyTensor()


class Op:
    """The declaration of one op, as data: tests, stubs, vmap and tracing read it.

    name        the public name; `node_name` is the class name of its nodes
    kernel      arrays (and other canonical arguments) to an array, or to several
    arguments   public arguments to canonical ones: the `tensors` first, then the `params`
    rules       for each tensor argument its formula, a constant, or None; or one joint `vjp`
    kind        "pointwise", "linear", "multilinear", "general" or "composite"
    """

    composite = inplace = view = shares = unsized = floating = False
    core, dims, shape = "", (), None    # what says the shape of the result
    returns: Any = None                 # None: one result; else what makes the tuple of results
    variadic = False                    # is the first argument a sequence of tensors?
    differentiable: Any = True          # or a tuple of bools, one a result
    jvp_rule: Any = None
    batch_rule: Any = None
    vjp: Any = None
    nondiff: tuple[str, ...] = ()       # tensors that `vjp` gives no gradient of
    saved_as: dict[str, Any] = {}       # PyTorch's names of saved values: formulas, or constants
    refusal: dict[str, str] = {}        # what to say of kinds of dtype; "": the kernel's name
    functional: Any = None              # of an in-place op: what it computes
    function: Any = None                # the three callables
    call: Any = None
    direct: Any = None
    plan: Any                           # how a node saves what its formulas name, and for whom
    users: Any
    Backward: Any                       # the class of its nodes
    inplace_op: Any = None              # the op of its in-place form
    inplace_node = ""                   # what the nodes of its in-place form are called, if not so
    body: Any                           # of a composite
    parts: Any = None                   # the same as the kernel, made of other ops
    unfolds = False                     # … which users see in its place?
    published: Any = None               # what users call
    schema: Any = None                  # PyTorch's, of an op that is declared by it
    key: str = ""                       # then: the overload's name in the table
    declaration: Any = None
    binder: Any = None                  # of a call before its overload is known
    refuses: Any = ()                   # PyTorch's name of the kernel, and kinds of dtypes
    apart: Any = ()                     # of pointwise ops: operands that are conditions
    inplace_check: Any = None           # … what raises for tensors that are not written to
    fixed = False                       # … has the result the type of the first operand?
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...    # what else a declaration gives

    def __init__(self, name: str, kind: str, **attributes: Any):
        self.name, self.kind = name, kind
        self.tensors: tuple[str, ...] = ("self",)
        self.params: tuple[str, ...] = ()
        self.rules: dict[str, Any] = {}
        self.saved: tuple[str, ...] = ()
        self.arguments: Callable[..., Any] = lambda *args: args
        self.__dict__.update(attributes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def is_differentiable(self) -> bool:
        return self.vjp is not None or any(r is not None for r in self.rules.values())

    def plain(self, canonical: tuple[Any, ...]) -> Any:
        """The call that no level takes: on values, or on shapes if a tensor is on `meta`."""
        return late_bound.on_meta(self, canonical) if late_bound.has_meta(canonical) \
            else self.direct(*canonical)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Op, Any]:
        """The op that a call with users' arguments leads to, and its canonical arguments."""
        if self.binder is not None:
            return self.binder.bind(args, kwargs)[:2]
        return self, self.arguments(*args, **kwargs)

    def inputs(self, canonical: tuple[Any, ...]) -> tuple[Any, ...]:
        """The tensor arguments among canonical ones (absent optional ones are None)."""
        return tuple(canonical[0]) if self.variadic else canonical[:len(self.tensors)]

    def with_inputs(self, canonical: tuple[Any, ...], inputs: Any) -> tuple[Any, ...]:
        """`canonical` with other tensor arguments."""
        if self.variadic:
            return (tuple(inputs), *canonical[1:])
        return (*inputs, *canonical[len(self.tensors):])


# ---- formulas and what they save -----------------------------------------------------------------

def parameters(formula: Any) -> tuple[str, ...]:
    """The names of a formula's parameters; a constant has none."""
    names = getattr(formula, "names", None)         # of a callable object
    if names is not None:
        return names
    code = getattr(formula, "__code__", None)
    return () if code is None else code.co_varnames[:code.co_argcount]


def plan_saving(op: Op) -> None:
    """Find out from the formulas what a node of `op` saves, and make the class of its nodes."""
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
        return fast.callable_of("apply", op, apply, ((op.vjp, _saved(takes), None),), late_bound)

    rules = [(op.rules.get(t), _positions(op, op.rules.get(t))) for t in op.tensors]
    if op.kind == "pointwise":
        return _pointwise_apply(op, rules)
    several = op.returns is not None

    def apply_rules(node: Any, grad: Any) -> Any:
        if node.packed:
            node = late_bound.Opened(node)
        if several and type(grad) is list:
            grad = grad[0]              # the other results have no gradients
        produced: list[Any] = []
        for (rule, takes), edge in zip(rules, node.edges):
            if edge is None or rule is None:
                produced.append(None)
            elif not callable(rule):
                produced.append(scaled(grad, rule))
            else:
                produced.append(rule(*[grad if i == 0 else unpack(node, i - 2) for i in takes]))
        return produced
    if several or op.variadic:
        return apply_rules
    places = tuple([(rule, _saved(takes), None) for rule, takes in rules])
    return fast.callable_of("apply", op, apply_rules, places, late_bound)


def _pointwise_apply(op: Op, rules: list[Any]) -> Callable[[Node, Any], Any]:
    def apply(node: Any, grad: Any) -> Any:
        if node.packed:
            node = late_bound.Opened(node)
        produced: list[Any] = []
        for (rule, takes), edge in zip(rules, node.edges):
            if edge is None or rule is None:
                produced.append(None)
            elif not callable(rule):
                produced.append(scaled(grad, rule))
            else:
                factor = rule(*[unpack(node, i - 2) for i in takes])
                if is_sign(rule, factor):
                    produced.append(scaled(grad, factor))
                    continue
                produced.append(getattr(late_bound, chaining(rule))(
                    grad, factor if node.dtype.kind not in "cW" else conjugate(factor)))
        return produced

    places = tuple([(rule, _saved(takes), chaining(rule)) for rule, takes in rules])
    return fast.callable_of("apply", op, apply, places, late_bound)


def _saved(takes: tuple[int, ...]) -> tuple[int, ...]:
    """Places among the saved values for those among (grad, needs, *saved)."""
    return tuple([i - 2 for i in takes])


def over(divisor: Any) -> Any:
    """Marks a pointwise formula as a divisor: 1 over it is the derivative, and a gradient is
    divided by it, which rounds once where a product with the inverse rounds twice."""
    divisor.divides = True
    return divisor


def chaining(rule: Any) -> str:
    """The op of a gradient and of what its pointwise formula gives."""
    return "div" if hasattr(rule, "divides") else "mul"


def is_sign(rule: Any, factor: Any) -> bool:
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


def scaled(grad: Any, factor: Any) -> Any:
    """`grad` times a constant of a declaration."""
    if factor == 1:
        return grad
    if factor == -1:
        return late_bound.neg(grad)
    if factor == 0:
        return late_bound.zeros_like(grad)
    return late_bound.mul(grad, factor)


# ---- recording ----------------------------------------------------------------------------------

def edges_of(inputs: Any) -> tuple[Any, ...] | None:
    """The gradient edges of the inputs; None if none of them requires grad."""
    edges = tuple([None if t is None or type(t) not in tensor_types or t._edge is None
                   else gradient_edge(t) for t in inputs])
    for edge in edges:
        if edge is not None:
            return edges
    return None


def record(op: Op, canonical: tuple[Any, ...], edges: tuple[Any, ...], results: Any) -> None:
    """Make the node of a call that has given `results`."""
    node = op.Backward()
    node.edges, node.order = edges, next_order()
    if op.returns is None:
        results = (results,)
    elif not op.unfolds:                # else the first alone is a result that users see
        node.outputs = len(results)
        node.simple = node.outputs == 1
        node.results = [(r._array.shape, r._array.dtype) for r in results]
    for i, result in enumerate(results):
        array = result._array
        if array.dtype not in FLOATING or (op.differentiable is not True
                                           and not op.differentiable[i]):
            continue
        if node.outputs == 1:
            node.shape, node.dtype = array.shape, array.dtype
            edge: Any = node
        else:
            edge = Output(node, i, array.shape, array.dtype)
        if op.view and result._base is not None:
            result._view.node = edge
        else:
            result._edge = edge
    saved = []
    for (kind, where), users in zip(op.plan, op.users):
        if kind == "tensor":
            used = users is None or any(edges[i] is not None for i in users)
            saved.append(save_input(canonical[where]) if used else None)
        elif kind == "param":
            saved.append(canonical[where])
        elif kind == "shape":
            of = canonical[where]
            saved.append(of._array.shape if type(of) in tensor_types else ())
        elif kind == "dtype":
            of = canonical[where]
            saved.append(of._array.dtype if type(of) in tensor_types else None)
        elif kind == "geometry":
            saved.append(late_bound.geometry(canonical[where]))
        elif kind == "result":
            saved.append(save_result(results[where], where))
        elif kind == "tensors":
            saved.append([save_input(t) for t in canonical[0][where:]])
        else:
            saved.append([getattr(t._array, kind[:-1]) for t in canonical[0]])
    node.saved = tuple(saved)
    if node_watchers:
        watch(node, canonical)
    if packers:
        late_bound.pack_node(node)


node_watchers: list[Any] = []           # anomaly mode and its kind: called with each new node


def watch(node: Node, inputs: Any = ()) -> None:
    for watcher in node_watchers:
        watcher(node)


def make_view(parent: Tensor, array: ndarray, replay: Any, made: str) -> Tensor:
    """A tensor on part of `parent`'s memory that shares its version counter."""
    result = new_tensor()
    result._array = array
    result._counter = counter = counter_of(parent)
    base = parent._base
    result._base = parent if base is None else base
    result._edge = LOOKUP
    result._view = view = new_view()
    view.node, view.replay = None, replay
    view.version = ~counter[0] if made == "no_grad" else counter[0]
    view.made = made or (parent._view.made if parent._edge is LOOKUP else "")
    return result


def class_name(name: str) -> str:
    """`floor_divide` → `FloorDivideBackward0`."""
    return "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"


# ---- all other ops with a kernel ----------------------------------------------------------------

def primitive(kernel: Any, *, tensors: Any = ("self",), vjp: Any = None, jvp: Any = None,
              batch: Any = None, kind: str = "general", view: Any = False, returns: Any = None,
              differentiable: Any = True, variadic: bool = False, params: Any = None,
              dims: Any = (), shapes: Any = (), core: str = "", name: str = "", shows: Any = (),
              node_name: str = "", namespace: Any = "torch", method: Any = True,
              inplace: bool = False, aliases: tuple[str, ...] = (), path: str = "general",
              unsized: Any = False, shares: bool = False, shape: Any = None, nondiff: Any = (),
              **rules: Any) -> Any:
    """Declare an op by its kernel; decorates the function that maps users' arguments to canonical
    ones: the `tensors`, then the rest, in the order of the kernel's parameters.

    d_<tensor>  the gradient of that argument, as a formula of `grad` and of what it names
    vjp         instead: all gradients at once, as a sequence; `needs` says which are wanted
    nondiff     tensors that the vjp gives no gradient of, such as indices
    jvp         the tangent of the result, from `tangents` (None where zero) and what it names;
                where absent it follows from the kind, or from the transposed vjp
    kind        "linear" (jointly, in all tensors), "multilinear" (in each alone), or "general"
    view        the result looks at the first tensor's memory; "replay" if strides can't say how
    shares      the same without being a view: it has no part in the history of what it looks at
    returns     None for one result; else `tuple`, `list` or a named tuple for several
    dims        params that are dimensions (canonical: counted from the front), for batching
    shapes      params that are shapes of the result, for batching
    core        core shape, gufunc style: leading dimensions broadcast, which gives batching
    batch       a batching rule, where none of these gives one
    shape       that of the result: "self", or a formula of the canonical arguments
    shows       params that nodes keep though no formula names them: PyTorch's nodes show them
    unsized     extents of the result depend on values: always, or if this says so of a call
    path        the kind of callable that takes the common case, where that is an own one
    """
    tensors = (tensors,) if isinstance(tensors, str) else tuple(tensors)

    def declare(arguments: Callable[..., Any]) -> Any:
        title = name or arguments.__name__
        names = params
        if names is None:
            names = parameters(kernel)[1 if variadic else len(tensors):]
        op = Op(title, kind, kernel=kernel, tensors=tensors, params=tuple(names), vjp=vjp,
                rules={k[2:]: v for k, v in rules.items()}, jvp_rule=jvp, batch_rule=batch,
                view=view, returns=returns, differentiable=differentiable, variadic=variadic,
                nondiff=_names(nondiff),
                dims=_names(dims), shapes=_names(shapes), core=core, arguments=arguments,
                node_name=node_name or class_name(title), namespace=namespace,
                unsized=unsized, shares=shares, shape=shape, shows=_names(shows),
                doc=arguments.__doc__)
        unknown = [k for k in rules if not k.startswith("d_") or k[2:] not in tensors]
        if unknown:
            raise TypeError(f"op {title}: {unknown} name no tensor argument of {tensors}")
        plan_saving(op)
        function = update_wrapper(make_general(op, interceptors, plain, arguments), arguments)
        form = path if namespace or method or path != "general" else "canonical"    # no user errs
        op.function = function = fast.callable_of(form, op, function, kernel, arguments)
        op.call = fast.callable_of("canonical", op, make_general(op, interceptors, plain, None),
                                   kernel)
        op.direct = make_general(op, (), ANY, None)
        publish(op, function, method, aliases)
        if inplace:
            publish_inplace(op, aliases)
        return function
    return declare


def linear(kernel: Any, **declaration: Any) -> Any:
    """A `primitive` that is linear in all its tensors together: forward mode is the op itself."""
    return primitive(kernel, kind="linear", **declaration)


def multilinear(kernel: Any, **declaration: Any) -> Any:
    """A `primitive` that is linear in each tensor alone (`matmul`)."""
    return primitive(kernel, kind="multilinear", **declaration)


def _names(given: Any) -> tuple[str, ...]:
    return tuple(given.split()) if isinstance(given, str) else tuple(given)


def make_general(op: Op, interceptors: Any, plain: Any, arguments: Any) -> Callable[..., Any]:
    kernel, n, variadic, returns = kernel_of(op), len(op.tensors), op.variadic, op.returns
    if op.floating:
        kernel = of_floats(kernel)
    differentiable = op.is_differentiable
    one = n == 1 and not variadic and returns is None
    view = op.view

    def call(*args: Any, **kwargs: Any) -> Any:
        if interceptors:
            return intercept_canonical(op, args) if arguments is None \
                else intercept(op, args, kwargs)
        if arguments is None:
            canonical = args
        else:
            out = kwargs.pop("out", None) if kwargs else None
            if out is not None:
                if type(out) not in plain and overrides.wanted((*args, out), kwargs):
                    return overrides.call(op, args, {**kwargs, "out": out})
                return into(out, op, call(*args, **kwargs), args)
            try:
                canonical = arguments(*args, **kwargs)
            except (AttributeError, TypeError):
                if overrides.wanted(args, kwargs):
                    return overrides.call(op, args, kwargs)
                return late_bound.respelled(op, args, kwargs)
        if one:
            first = canonical[0]
            if type(first) not in plain:
                return coerce_general(op, args, kwargs, canonical)
            r = kernel(first._array, *canonical[1:])
            if type(r) is not ndarray:
                r = asarray(r)
            if view and (r.base is not None or r is first._array):
                replay = replay_of(op, first, canonical) if first._edge is LOOKUP \
                    or view == "replay" else None
                result = make_view(first, r, replay, "" if grad_enabled() else "no_grad")
            else:
                result = new_tensor()
                result._array = r
                result._base = result._counter = result._edge = None
            edge = first._edge
            if edge is None or not differentiable or not grad_enabled():
                return result
            edge = gradient_edge(first)
            if edge is not None and r.dtype in FLOATING:
                record(op, canonical, (edge,), result)
            return result
        inputs = canonical[0] if variadic else canonical[:n]
        arrays = []
        for tensor in inputs:
            if type(tensor) in plain:
                arrays.append(tensor._array)
            elif tensor is None:
                arrays.append(None)
            else:
                return coerce_general(op, args, kwargs, canonical)
        if variadic:
            r = kernel(arrays, *canonical[1:])
        else:
            r = kernel(*arrays, *canonical[n:])
        if returns is None:
            result = new_tensor()
            result._array = r if type(r) is ndarray else asarray(r)
            result._base = result._counter = result._edge = None
        else:
            made = "multi_output" if grad_enabled() else "no_grad"
            parts = [make_view(inputs[0], a, None, made) if view else wrap(a) for a in r]
            result = returns(parts) if returns in (tuple, list) else returns(*parts)
        if differentiable and grad_enabled():
            edges = edges_of(inputs)
            if edges is not None:
                record(op, canonical, edges, result)
        return result
    return call


def of_floats(kernel: Any) -> Any:
    """`kernel`, with integers as numbers of the default floating type."""
    def run(first: ndarray, *rest: Any) -> Any:
        return kernel(first if first.dtype in FLOATING else convert(
            first, dtypes.default_float()), *rest)
    return run


def replay_of(op: Op, parent: Tensor, canonical: tuple[Any, ...], always: bool = False) -> Any:
    """How to make a view again from its base, where strides on the base cannot say it."""
    before = parent._view.replay if parent._edge is LOOKUP else None
    if before is None and op.view != "replay" and not always:
        return None
    rest = canonical[1:]
    if before is None and parent._base is None:
        return lambda base: op.call(base, *rest)
    if before is None:
        array, own = parent._array, parent._base._array
        return lambda base: op.call(late_bound.same_part(base, array, own), *rest)
    return lambda base: op.call(before(base), *rest)


# ---- composites ---------------------------------------------------------------------------------

def composite(function: Any = None, *, namespace: Any = "torch", method: Any = False,
              aliases: tuple[str, ...] = (), inplace: bool = False, name: str = "",
              path: Any = None) -> Any:
    """Declare a public function made of other ops: it needs no rule of any sort."""
    if function is None:
        return lambda f: composite(f, namespace=namespace, method=method, aliases=aliases,
                                   inplace=inplace, name=name)
    op = Op(name or function.__name__, "composite", composite=True, namespace=namespace,
            doc=function.__doc__, body=function)
    notes = function.__annotations__
    notes.update({name: Tensor for name, note in notes.items() if note == "Tensor"})

    def call(*args: Any, **kwargs: Any) -> Any:
        if interceptors:
            return intercept(op, args, kwargs)
        if not is_passive(map(type, (*args, *kwargs.values()))) and overrides.wanted(args, kwargs):
            return overrides.call(op, args, kwargs)
        try:
            return function(*args, **kwargs)
        except TypeError:
            return late_bound.respelled(op, args, kwargs)

    call = fast.callable_of("composite", op, update_wrapper(call, function), function)
    if path is not None:                    # a kind of callable, and the op that it calls
        call = fast.callable_of(path[0], op, call, path[1])
    op.function = op.call = call
    op.direct = function
    publish(op, call, method, aliases)
    if inplace:
        publish_inplace(op, aliases)
    return call


def checked_arguments(function: Any, bound: bool = True, name: str = "", space: str = "torch"
                      ) -> Any:
    """`function`, which is no op, with the check of arguments that an op has: a method if `bound`,
    else a function."""
    function.__name__ = function.__qualname__ = name or function.__name__
    op = Op(function.__name__, "method" if bound else "function", composite=True,
            namespace=space, body=function, function=function)
    checked = fast.callable_of("closure", op, function)
    if not bound:
        return checked
    checked.is_member = True            # modes and subclasses see it as they see a property
    return as_method(checked)


# types whose values never override a function, seen at the top of an argument list
passive: set[type] = {int, float, bool, complex, str, type(None), dtypes.dtype, np.ndarray, Tensor,
                      Size, slice}
is_passive = passive.issuperset


# ---- the rare cases of a call -------------------------------------------------------------------

def unsupported(op: Op, x: ndarray) -> RuntimeError:
    kind = "c" if x.dtype.kind == "W" else x.dtype.kind
    if kind in op.refusal:
        error = NotImplementedError if kind in "cW" and len(op.tensors) == 1 else RuntimeError
        return error(op.refusal[kind])
    name = type_name(dtypes.from_numpy_dtype(x.dtype))
    if op.refuses:
        said = op.refuses[0]
        return no_kernel(said if type(said) is str else said(x), x.dtype)
    plain_name = op.name.removeprefix(f"{op.namespace}_")
    kernel = op.refusal.get("", f"{plain_name}_cpu")
    return NotImplementedError(f'"{kernel}" not implemented for \'{name}\'')


def coerce_general(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], canonical: Any) -> Any:
    """A call of any other op whose tensors are not all plain."""
    return late_bound.coerce_general(op, args, kwargs, canonical)


def into(out: Any, op: Op, result: Any, read: Any = ()) -> Any:
    """Store a result into `out=`: torch's rules of resizing, casting and refusing."""
    return late_bound.store(out, op, result, read)


# ---- publishing ---------------------------------------------------------------------------------

def publish(op: Op, function: Any, method: Any, aliases: tuple[str, ...]) -> None:
    """Enter an op into the table, its namespaces and, if wanted, the methods of Tensor."""
    function.op, op.published = op, function
    function.__name__ = function.__qualname__ = op.name
    if op.doc:
        function.__doc__ = op.doc
    spaces: Any = (op.namespace,) if isinstance(op.namespace, str) else op.namespace or ()
    table[f"{spaces[0]}.{op.name}" if spaces and spaces[0] != "torch" else op.name] = op
    for space in spaces:
        function.__module__ = "flambeau" if spaces[0] == "torch" else f"flambeau.{spaces[0]}"
        for name in (op.name, *aliases):
            known = public.setdefault(space, {}).setdefault(name, function)
            if getattr(known, "op", op) is not op:
                raise TypeError(f"there are two public functions {space}.{name}")
            public[space][name] = function
    if method:
        for name in (op.name, *aliases) if method is True else (method,):
            setattr(Tensor, name, as_method(function))


def publish_inplace(op: Op, aliases: tuple[str, ...]) -> None:
    function = late_bound.make_inplace(op)
    for name in (op.name, *aliases):
        setattr(Tensor, f"{name}_", as_method(function))
    if "torch" in ((op.namespace,) if isinstance(op.namespace, str) else op.namespace or ()):
        for name in (op.name, *aliases):
            public["torch"].setdefault(f"{name}_", function)


fast.bind(passive=passive, node_watchers=node_watchers, replay_of=replay_of,
          coerce_general=coerce_general)
