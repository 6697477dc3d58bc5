"""Declaring an op: one statement that is the whole truth of it.

    cummax = op("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                kernel=kernels.cummax, dims="dim", refuses=("cummax_cpu", "UcW8"),
                d_self=lambda grad, indices, self_shape, dim: …)

One that is made of other ops has no kernel, and needs no rules: the statement decorates its body,
which takes the values of the schema's parameters.

    @op("kron(Tensor self, Tensor other) -> Tensor")
    def kron(self, other): …

Nothing of it is parsed when it is made: that costs what the strings cost. The first call of the
function, or the first look for the op, makes an `Op` of each schema.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import groupby
from typing import Any

from flambeau.core import late_bound, return_types
from flambeau.core.autograd.formulas import infer_saved_values
from flambeau.core.calling import fast
from flambeau.core.calling.call import ANY, make_call
from flambeau.core.modes import interceptors
from flambeau.core.op import Op, class_name, module_of, public, table
from flambeau.core.tensor import Tensor, plain_types
from flambeau.dispatch.canonical import Argument, Overload, role_of
from flambeau.dispatch.facts import AtenForm, Record, check_words
from flambeau.dispatch.function import Function, InplaceFunction, in_front, operator
from flambeau.dispatch.parts import CompositeBackward, expose_parts
from flambeau.schema.parser import MISSING, Parameter, Schema, parse
from flambeau.schema.signature import OPTIONS, function_signature, in_order, method_signature

_PREFIXES = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with


def namespace_of(name: str) -> str:
    """Where the function of that name is found."""
    prefix = name.partition("_")[0]
    return prefix if prefix in _PREFIXES else "torch"


class Declaration(Record):
    """What is declared of an op, and the ops of its schemas, which are made at first use.

    texts       a schema for each overload, in PyTorch's notation
    kernel      canonical arguments (arrays for tensors) to an array, or to several
    body        instead: the op is made of others, by this function of the values of its parameters
    in_c        of a body: gives what does its common case in C, and else NotImplemented
    explicit    is that one op below autograd?
    aten        what modes that look below autograd see, where that is not the schema: each a
                `AtenForm`, of which the first that fits is taken
    aten_calls  makes the calls that they see instead; NotImplemented where they see the op
    overload_of a function that these are further overloads of, with a kernel or body of their own
    same_as     schemas of further ways to call the first op
    parameter_names     what these call its parameters: "unbiased=correction"
    parts       the same as the kernel, made of other ops: what every transform runs, and what is
                differentiated where no rule is given
    backward    … a kernel of the gradients, where no graph of them is wanted: of arrays for `grad`,
                `needs`, arguments and results
    implicit    … do users see the parts, in the graph and in modes?
    checked_kernel  a compiled kernel that checks its arguments: C tries it first, and it raises
                Misfit for all that is not the common case
    rules       for a tensor argument its gradient, a formula of `grad` and of what it names
    vjp         instead: all gradients at once, as a sequence; `nondiff` names tensors without one
    jvp         the tangent of the results, where it does not follow from the kind or from the vjp
    kind        "linear", "multilinear" or "general"; of what makes tensors of data, "creation"
    batch       a batching rule, where none follows from the dimensions
    core        core shapes, gufunc style, "(m,k),(k,n)->(m,n)": the dimensions in front broadcast,
                and batching follows

    dims        parameters that are dimensions of the first tensor
    new_dims    … of one that has one dimension more
    all_dims    … that are all its dimensions, in some order
    some_dims   … lists of dimensions, an empty one of which means none of them
    as_given    do modes see derivatives with dimensions as the call counts them?
    sizes       parameters that are extents of the result
    canonical   where that is not enough: users' values to canonical arguments, with the checks
    kernel_checks   does the kernel check them too (it raises Misfit), so that C need not ask?
    unused      parameters that are no canonical arguments
    order       of those that are no tensors, where it is not that of the schema
    shape       the shape of the result: "self", or a formula of the canonical arguments
    unsized     do extents of the result depend on values?
    shares      does the result look at the same memory without being a view, as `detach` gives?
    replay      of a view that strides on its base cannot say: is it made again by a call? If on
                another view of that, what gives it

    floating    do integers become the default floating type first?
    first       raises for users' values what PyTorch says before it looks at dimensions
    refuses     PyTorch's name of the kernel, or a sentence, and the kinds of dtypes that it is not
                compiled for
    out         is there an `out=` form? If not of all overloads, the names of those
    out_type    what is said of an `out` of another type; if nothing, all that it can be cast to do
    out_first   does its type have to be that of the first tensor (or `bool`, if it says so), and
                is it asked for before dimensions and extents?
    out_cast    what is said of one that the result can't be cast to; this, the type and the speaker
                may be functions of the arguments (the first two also of both types)
    out_device  what is said of an `out` on another device
    out_reported_as     the op that says that `out=` is not differentiable, where it is another (or
                the sentence); None: none; False: it does not ask whether anything requires grad
    out_rows    is an `out` that is resized laid out row by row, and not as the result is?
                "occupied": only one that had elements; a function of the arguments says so
    out_resized is it warned of, if it had elements? A function of both shapes says another thing
    overlap     may memory be read that is written? "index": not at all; "element": only the very
                elements; "anywhere": an expanded tensor may be written to; "fill": what is read
                may be one element of it; "whole": not even an expanded `out=` of another shape is
                taken. Several words may be said
    autocast    what autocast makes of floating tensors: "lower", "full", the "widest" precision,
                "untouched"; or "opened", if it looks at what it is made of
    out_any     may `out` have any type?
    typed_by_out    does the type of `out` stand for a `dtype` that is not given? "floating": of
                floating input only a floating one
    inplace     is there a form that writes to the first tensor? If a method, as a function too?
    returns     the class of several results, where the schema does not say it
    deprecated  schemas that PyTorch warns of
    numbers     do numbers stand for tensors?
    hidden      overloads that modes are shown, and users can't call
    operators   Python's, as methods
    function    is it published as a function? as a `method`? With `aliases`, schemas of other names
    namespace   where that does not follow from the name: "nn.functional"
    node        the class name of nodes, where that does not follow from the name; `{}` in it is
                the number of the schema
    inplace_node    that of the in-place form, where it differs, perhaps one for each schema; of an
                op without derivatives: that form has a node nevertheless, and nothing flows
    inplace_first   raises for what `canonical` gets what PyTorch says only of the in-place form
    inplace_resizes     … does that give the tensor the shape of the result?
    saved_as    PyTorch's names of what nodes save, where they differ: formulas, or constants
    replaces    does it replace a function that is declared already?
    """
    texts: tuple[str, ...]
    kernel: Callable[..., Any] | None = None
    body: Callable[..., Any] | None = None
    in_c: Any = None
    explicit: bool = False
    aten: tuple[AtenForm, ...] = ()
    aten_calls: Any = None
    overload_of: Any = None
    same_as: tuple[str, ...] = ()
    parameter_names: str = ""
    parts: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None
    implicit: bool = False
    checked_kernel: Any = None
    rules: dict[str, Any] = {}
    vjp: Any = None
    jvp: Any = None
    nondiff: str = ""
    differentiable: Any = True
    kind: str = "general"
    batch: Any = None
    core: str = ""
    dims: str = ""
    new_dims: str = ""
    all_dims: str = ""
    some_dims: str = ""
    as_given: bool = False
    sizes: str = ""
    canonical: Any = None
    kernel_checks: bool = False
    unused: str = ""
    order: str = ""
    shape: Any = None
    unsized: Any = False
    shares: bool = False
    replay: Any = False
    floating: bool = False
    first: Callable[..., None] | None = None
    refuses: Any = ()
    out: Any = True
    out_type: str = ""
    out_first: Any = False
    out_cast: str = ""
    out_device: str = ""
    out_reported_as: Any = ""
    out_rows: Any = False
    out_resized: Any = True
    overlap: str = ""
    autocast: str = ""
    out_any: bool = False
    typed_by_out: Any = False
    inplace: bool = False
    inplace_function: bool = False
    returns: Any = None
    deprecated: tuple[str, ...] = ()
    numbers: bool = False
    hidden: str = ""
    operators: str = ""
    function: bool = True
    method: bool = True
    aliases: tuple[str, ...] = ()
    namespace: str = ""
    node: str = ""
    inplace_node: str = ""
    inplace_first: Callable[..., Any] | None = None
    inplace_resizes: bool = False
    saved_as: dict[str, Any] = {}
    replaces: bool = False
    doc: str = ""
    published: Any = None               # the function

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        check_words(facts)
        self.name = _name_of(self.texts[0])
        self.namespace = self.namespace or namespace_of(self.name)
        self.module = module_of(self.namespace)
        self.joined: list[Declaration] = []         # those of further overloads

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        every = [parse(text) for text in self.texts]
        return tuple([s for s in every if not self.is_hidden(s.full_name)])

    def is_hidden(self, key: str) -> bool:
        """Is that overload only shown to modes, and not called by users?"""
        return key.partition(".")[2] in self.hidden.split()

    def key(self, full_name: str) -> str:
        """The name in the table of an overload that is not the first of a function."""
        return full_name if "." in full_name else f"{full_name}.default"

    @property
    def needs_preparing(self) -> bool:
        """Are its canonical arguments made in Python?"""
        return self.canonical is not None and self.body is None and self.kind != "pointwise" \
            and not (self.kernel_checks or self.checked_kernel or self.all_dims or self.sizes)

    def closest_op(self, other: Schema) -> Op:
        """The op that an alias with that schema leads to: the one with the most like it."""
        same = [op for d in (self, *self.joined) for op in d.ops
                if len(op.schema.parameters) == len(other.parameters)]
        kinds = [p.kind for p in other.parameters]
        same.sort(key=lambda op: (op.schema.overload != other.overload,
                                  [p.kind for p in op.schema.parameters] != kinds))
        return same[0]

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """One for each schema, in order of declaration: their nodes are numbered so."""
        numbers = {text.partition("(")[0]: i for i, text in enumerate(self.texts)}
        return tuple([self.make_op(numbers[s.full_name], s) for s in self.schemas])

    @cached_property
    def inplace_ops(self) -> tuple[Op, ...]:
        """Of each op the one that writes its result into the first tensor; those of joined
        declarations too."""
        made = [late_bound.make_inplace(op) for d in (self, *self.joined) for op in d.ops]
        space: Any = vars(Tensor) if self.method else public[self.namespace]
        for op in made:
            op.published = space[f"{self.name}_"]
            declared = op.functional.declaration
            names = [text.partition("(")[0] for text in declared.texts]
            nodes = declared.inplace_node.split() or [""]
            index = names.index(op.functional.schema.full_name)
            op.functional.inplace_node = nodes[min(index, len(nodes) - 1)]
        return tuple(made)

    def canonical_parameters(self, schema: Schema) -> list[Parameter]:
        """What the op of a schema takes. That is the same for all overloads: the parameters of the
        longest, tensors first; of an op that is made of others, those of each, in order."""
        longest = max(self.schemas, key=lambda s: len(s.parameters)).parameters
        if self.body is not None:
            own = {p.name: p for s in self.schemas for p in s.parameters}
            if any(s.is_factory for s in self.schemas):
                own["requires_grad"] = OPTIONS[-1]
            return [*own.values()]
        kept = [p for p in longest if p.name not in self.unused.split()]
        order = self.order.split()
        return sorted(kept, key=lambda p: not p.is_tensor and (
            1 + (order.index(p.name) if order else 0)))

    def is_additional(self, index: int) -> bool:
        """Is this schema another than the first of its function?"""
        return bool(index or self.overload_of)

    def make_op(self, index: int, schema: Schema) -> Op:
        own = self.canonical_parameters(schema)
        key = self.key(schema.full_name) if self.is_additional(index) else self.name
        if self.body is not None:
            kind = "creation" if self.kind == "creation" else "composite"
            op = Op(self.name, kind, key=key, schema=schema, declaration=self,
                    composite=True, view=schema.is_view, unsized=self.unsized,
                    body=return_types.named(self.body, _class_of_results(self.name, schema)),
                    namespace=self.namespace, doc=self.doc)
            op.call = op.direct = op.body
            op.function = op.published = self.published
            return op
        tensors = tuple([p.name for p in own if p.is_tensor])
        others = tuple([p.name for p in own if not p.is_tensor])
        vjp = self.vjp
        if self.parts is not None and vjp is None and not self.rules and self.differentiable:
            several = self.differentiable is not True and sum(self.differentiable) > 1
            vjp = CompositeBackward(self.parts, tensors, others, self.backward, several)
        op = Op(self.name, self.kind, key=key, schema=schema, declaration=self,
                kernel=self.kernel, vjp=vjp, rules=self.rules, jvp_rule=self.jvp,
                batch_rule=self.batch, nondiff=tuple(self.nondiff.split()), parts=self.parts,
                tensors=tensors, params=others,
                variadic=any(p.is_list for p in own[:1]),
                view="replay" if self.replay and schema.is_view else schema.is_view,
                returns=self.returns or _class_of_results(self.name, schema),
                differentiable=self.differentiable,
                dims=(*self.dims.split(), *self.new_dims.split(), *self.some_dims.split()),
                shapes=tuple(self.sizes.split()), shape=self.shape, unsized=self.unsized,
                shares=self.shares, core=self.core,
                floating=self.floating, refuses=self.refuses, namespace=self.namespace,
                doc=self.doc,
                saved_as=self.saved_as,
                node_name=(self.node or f"{class_name(self.name)[:-1]}{{}}").format(index))
        infer_saved_values(op)
        op.call = make_call(op, interceptors, plain_types)
        if self.implicit:
            op.implicit = True
            expose_parts(op)
        else:
            op.call = fast.make_callable("canonical", op, op.call, self.checked_kernel or op.kernel)
        op.direct = make_call(op, (), ANY)
        op.function = op.published = self.published
        return op

    # ---- how they are called ---------------------------------------------------------------------

    def overloads(self, bound: bool, writes: bool = False) -> tuple[Overload, ...]:
        """How the function, or the method, is called, in the order in which that is tried; if it
        `writes` to the first tensor, without `out`."""
        made = []
        for each in (self, *self.joined):
            if (each.method or each is self) if bound else (each.function or not self.function):
                made += [each.overload(op, bound, writes=writes) for op in each.ops
                         if not bound or _before_the_dot(op.schema) is not None]
                made += [each.overload(each.ops[0], bound, parse(text)) for text in each.same_as]
        order = in_order([overload.signature for overload in made])
        old = [self.overload(self.ops[0], bound, parse(text), True) for text in self.deprecated]
        return (*sorted(made, key=lambda overload: order.index(overload.signature)), *old)

    def overload(self, op: Op, bound: bool, other: Schema | None = None,
                 is_deprecated: bool = False, writes: bool = False) -> Overload:
        """How an op is called: by its own schema, by that of an alias, whose parameters may have
        other names, or by one that PyTorch has given up, whose parameters are in another order."""
        schema = other or op.schema
        signature = method_signature(schema) if bound else function_signature(
            schema, out_variant(schema) if self._has_out(
                schema if schema.name == op.schema.name or self.hidden else op.schema)
            and not writes else None)
        signature = signature._replace(is_deprecated=is_deprecated)
        own = (_before_the_dot(schema), *signature.parameters) if bound else signature.parameters
        shown = any(p.name == "self" for p in schema.parameters)    # as `input`
        names = ["self" if shown and p.name == "input" else p.name for p in own]
        if schema.name == op.schema.name:
            spelled = dict([pair.split("=") for pair in self.parameter_names.split()])
            names = [spelled.get(name, name) for name in names]
        else:
            names = [p.name for p in op.schema.parameters] + names[len(schema.parameters):]
        given = {p.name: p for p in op.schema.parameters}
        arguments = [
            Argument(names.index(p.name) if p.name in names else -1,
                     role_of(given.get(p.name, p), self),
                     None if p.value is MISSING else p.value)
            for p in self.canonical_parameters(op.schema)]
        stores = "out" in names and all(p.name != "out" for p in schema.parameters)
        out = names.index("out") if stores else -1
        return Overload(signature, own, tuple(arguments), op, out)

    def _has_out(self, schema: Schema) -> bool:
        if schema.is_view:
            return False
        return self.out is True or (
            self.out is not False and schema.overload in self.out.split(" "))


class Alias:
    """Another name of a function, with schemas of its own; the ops are the same."""

    def __init__(self, of: Declaration, texts: list[str]):
        self.of, self.texts, self.name = of, texts, _name_of(texts[0])
        self.doc = of.doc
        own = namespace_of(self.name)
        self.namespace = of.namespace if own == "torch" and of.namespace not in _PREFIXES else own
        self.module = module_of(self.namespace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)

    def overloads(self, bound: bool, writes: bool = False) -> tuple[Overload, ...]:
        schemas = [parse(text) for text in self.texts]
        made = [self.of.overload(self.of.closest_op(s), bound, s, writes=writes) for s in schemas]
        order = in_order([overload.signature for overload in made])
        return tuple(sorted(made, key=lambda overload: order.index(overload.signature)))


def _before_the_dot(schema: Schema) -> Parameter | None:
    """The tensor that a method is one of; None for overloads that are no methods."""
    first = next((p for p in schema.parameters if p.name == "self"), None)
    if first is None and schema.parameters:
        first = schema.parameters[0]
    return first if first is not None and first.is_tensor and not first.is_list else None


def _name_of(text: str) -> str:
    return text.partition("(")[0].partition(".")[0]


def out_variant(schema: Schema) -> Schema:
    """The `out=` form of a schema: a tensor by name for each result."""
    outs = [Parameter(r.name or "out", "Tensor", r.size, by_name=True, alias="a", is_written=True)
            for r in schema.results]
    return schema._replace(parameters=(*schema.parameters, *outs))


def _class_of_results(name: str, schema: Schema) -> Any:
    """None for one result; else what several come in."""
    if len(schema.results) == 1:
        return tuple if schema.results[0].is_list else None
    names = schema.result_names
    return return_types.declare(name, " ".join(names)) if names and all(names) else tuple


# ---- the statement -------------------------------------------------------------------------------

def op(*schemas: str, **declared: Any) -> Any:
    """Declare an op by its schemas, its kernel, and more of a `Declaration`; gives the function, or
    without a kernel the decorator of the body. `d_<tensor>` is the gradient of that argument."""
    if not {"kernel", "body"} & declared.keys():
        return lambda body: op(*schemas, **{"doc": body.__doc__ or "", **declared, "body": body})
    rules = {name[2:]: declared.pop(name) for name in [*declared] if name[:2] == "d_"}
    return declare(Declaration(texts=schemas, rules=rules, **declared))


def declare(declaration: Declaration) -> Any:
    """Enter a declaration into the table, its functions into their namespaces, its methods into the
    class; gives the function."""
    names = [text.partition("(")[0] for text in declaration.texts]
    if declaration.replaces and declaration.overload_of is not None:
        raise NotImplementedError(f"{names[0]}: replacing further overloads of a function")
    table.declare({
        declaration.key(name) if declaration.is_additional(i) else declaration.name:
            partial(_find_op, declaration, name)
        for i, name in enumerate(names) if not declaration.is_hidden(name)}, declaration.replaces)
    if declaration.overload_of is not None:
        first = declaration.overload_of.twin
        first.declaration.joined.append(declaration)
        declaration.published = first.published
        return first.published
    declaration.published = publish(declaration, declaration)
    for _, texts in groupby(declaration.aliases, _name_of):
        alias = Alias(declaration, [*texts])
        publish(alias, declaration)
        _register_inplace(alias, declaration)
    _register_inplace(declaration, declaration)
    for symbol in declaration.operators.split():
        register_operator(declaration, symbol)
    return declaration.published


def _register_inplace(named: Declaration | Alias, declaration: Declaration) -> None:
    """Enter the form that writes to the first tensor, if there is one."""
    if not declaration.inplace or named.namespace in _PREFIXES:
        return
    if named.method:
        method = InplaceFunction(named, bound=True)
        method.published = in_front(method)
        setattr(Tensor, method.name, method.published)
    if declaration.inplace_function or not named.method:
        function = InplaceFunction(named, bound=False)
        function.published = in_front(function)
        space = "torch" if named.method else named.namespace
        public.setdefault(space, {}).setdefault(function.name, function.published)


def register_operator(declaration: Declaration, symbol: str) -> None:
    """Python's operator of that name as a method."""
    writes = symbol[2] == "i" and symbol != "__invert__"
    kind = InplaceFunction if writes else Function
    setattr(Tensor, symbol, operator(kind(declaration, bound=True), symbol))


def _find_op(declaration: Declaration, full_name: str) -> Op:
    return next(op for op in declaration.ops if op.schema.full_name == full_name)


def publish(named: Any, declaration: Any, kind: type[Function] = Function) -> Any:
    """Make the function and the method of a declaration, or of an alias of it, and enter them."""
    twin = kind(named, bound=False)
    twin.published = in_front(twin)
    if declaration.function:
        space = public.setdefault(named.namespace, {})
        space[named.name.removeprefix(f"{named.namespace}_")] = twin.published
    if declaration.method and named.namespace not in _PREFIXES:
        bound = kind(named, bound=True)
        bound.published = in_front(bound)
        setattr(Tensor, named.name, bound.published)
    return twin.published


__all__ = ["AtenForm", "Declaration", "op"]
