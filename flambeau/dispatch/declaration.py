"""Declaring an op: one statement that is the whole truth of it.

    cummax = op("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                kernel=kernels.cummax, dims="dim", refuses=("cummax_cpu", "UcW8"),
                d_self=lambda grad, indices, self_shape, dim: …)

Nothing of it is parsed when it is made: 1,600 callables cost half a millisecond. The first call of
the function, or the first look at its `op`, makes an `Op` of each schema.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau import return_types
from flambeau.core import fast
from flambeau.core.modes import interceptors
from flambeau.core.op import (
    ANY,
    Op,
    class_name,
    make_general,
    parameters,
    plan_saving,
    public,
    table,
)
from flambeau.core.tensor import Tensor, basis, plain
from flambeau.dispatch.canonical import role_of
from flambeau.dispatch.function import (
    Argument,
    Function,
    InplaceFunction,
    Overload,
    in_front,
)
from flambeau.schema.parser import MISSING, Parameter, Schema, parse
from flambeau.schema.signature import Signature, function_signature, in_order, method_signature

_PREFIXES = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with


class Declaration:
    """What is declared; the ops of its schemas are made at first use."""

    def __init__(self, schemas: tuple[str, ...], kernel: Any, facts: dict[str, Any],
                 rules: dict[str, Any]):
        self.texts, self.kernel, self.facts, self.rules = schemas, kernel, facts, rules
        self.name = schemas[0].partition("(")[0].partition(".")[0]
        self.doc = facts.pop("doc")
        self.function: Any = None               # what users call, and its twin in Python
        self.twin: Any = None

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """One for each overload."""
        return tuple([parse(text) for text in self.texts])

    @property
    def ops(self) -> tuple[Op, ...]:
        """One for each schema, in order of declaration: their nodes are numbered so."""
        found = self.__dict__.get("_ops")
        if found is None:
            found = self._ops = tuple([self.make_op(i, s) for i, s in enumerate(self.schemas)])
        return found

    @property
    def inplace_ops(self) -> tuple[Op, ...]:
        """Of each op the one that writes its result into the first tensor."""
        found = self.__dict__.get("_inplace_ops")
        if found is None:
            found = self._inplace_ops = tuple([basis.make_inplace(op).op for op in self.ops])
        return found

    @property
    def canonical_parameters(self) -> list[Parameter]:
        """Of all overloads together: those of the longest, tensors first."""
        longest = max(self.schemas, key=lambda s: len(s.parameters)).parameters
        return sorted(longest, key=lambda p: not p.is_tensor)

    def make_op(self, index: int, schema: Schema) -> Op:
        facts, own = self.facts, self.canonical_parameters
        tensors = tuple([p.name for p in own if p.is_tensor])
        op = Op(self.name, facts["kind"], key=schema.full_name if index else self.name,
                kernel=self.kernel,
                tensors=tensors, params=tuple([p.name for p in own if not p.is_tensor]),
                vjp=self.rules.get("vjp"), rules=_renamed(self.rules, schema),
                jvp_rule=_formula(self.rules.get("jvp"), schema), batch_rule=facts["batch"],
                returns=_class_of_results(self.name, schema), schema=schema,
                view=facts["view"] or schema.is_view, variadic=any(p.is_list for p in own[:1]),
                differentiable=facts["differentiable"], nondiff=tuple(facts["nondiff"].split()),
                dims=_words(facts["dims"], facts["new_dims"]), shapes=_words(facts["shapes"]),
                shape=facts["shape"], namespace=self.namespace, doc=self.doc, declaration=self,
                node_name=facts["node"] or f"{class_name(self.name)[:-1]}{index}",
                refuses=facts["refuses"], unsized=facts["unsized"], shares=False, core="")
        op.rules = {k: v for k, v in op.rules.items() if k in tensors}
        plan_saving(op)
        op.call = fast.callable_of("canonical", op, make_general(op, interceptors, plain, None),
                                   op.kernel)
        op.direct = make_general(op, (), ANY, None)
        op.function = op.published = self.function
        return op

    @property
    def namespace(self) -> str:
        prefix = self.name.partition("_")[0]
        return self.facts["namespace"] or (prefix if prefix in _PREFIXES else "torch")

    @property
    def module(self) -> str:
        """Where the function seems to come from."""
        return "flambeau" if self.namespace == "torch" else f"flambeau.{self.namespace}"

    def overloads(self, bound: bool) -> tuple[Overload, ...]:
        """How the function, or the method, is called, in the order in which that is tried."""
        made = [self._overload(op, bound) for op in self.ops]
        order = in_order([overload.signature for overload in made])
        return tuple(sorted(made, key=lambda overload: order.index(overload.signature)))

    def _has_out(self, schema: Schema) -> bool:
        out = self.facts["out"]
        return out is True or (bool(out) and schema.overload in out.split())

    def _overload(self, op: Op, bound: bool) -> Overload:
        schema = op.schema
        signature = method_signature(schema) if bound else function_signature(
            schema, _with_out(schema) if self._has_out(schema) else None)
        own = signature.parameters if not bound else (schema.parameters[0], *signature.parameters)
        names = ["self" if p.name == "input" else p.name for p in own]
        facts, arguments = self.facts, []
        for p in self.canonical_parameters:
            at = names.index(p.name) if p.name in names else -1
            role = role_of(p, tuple(facts["dims"].split()), tuple(facts["new_dims"].split()))
            constant = None if p.value is MISSING else p.value
            arguments.append(Argument(at, role, constant))
        out = names.index("out") if "out" in names else -1
        return Overload(signature, own, tuple(arguments), op, out)


def _words(*texts: str) -> tuple[str, ...]:
    return tuple([word for text in texts for word in text.split()])


def _with_out(schema: Schema) -> Schema:
    """The `out=` form of a schema: a tensor by name for each result."""
    outs = [Parameter(r.name or "out", "Tensor", by_name=True, alias="a", is_written=True)
            for r in schema.results]
    return schema._replace(parameters=(*schema.parameters, *outs))


def _class_of_results(name: str, schema: Schema) -> Any:
    """None for one result; else what several come in."""
    if len(schema.results) == 1:
        return list if schema.results[0].is_list else None
    fields = " ".join(schema.result_names)
    if not fields.strip():
        return tuple
    return getattr(return_types, name, None) or return_types.declare(name, fields)


def _renamed(rules: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The formulas by the tensors that they are the derivatives of."""
    return {name[2:]: _formula(rule, schema) for name, rule in rules.items() if name[:2] == "d_"}


def _formula(rule: Any, schema: Schema) -> Any:
    return rule


def op(*schemas: str, kernel: Callable[..., Any], kind: str = "general", dims: str = "",
       new_dims: str = "", shapes: str = "", shape: Any = None, refuses: Any = (), out: Any = True,
       inplace: bool = False, typed_by_out: bool = False,
       function: bool = True, method: bool = True, node: str = "",
       namespace: str = "", differentiable: Any = True, nondiff: str = "", batch: Any = None,
       view: Any = False, unsized: Any = False, doc: str = "", **rules: Any) -> Any:
    """Declare an op by its schemas; gives its public function.

    schemas     one for each overload, in PyTorch's notation
    kernel      canonical arguments (arrays for tensors) to an array, or to several
    d_<tensor>  the gradient of that argument, as a formula of `grad` and of what it names
    vjp, jvp    as in `core.op.primitive`; so are kind, shape, batch, differentiable, nondiff
    dims        parameters that are dimensions of the first tensor; `new_dims` of one with one more
    refuses     PyTorch's name of the kernel, and the kinds of dtypes that it is not compiled for
    out         is there an `out=` form? If not of all overloads, the names of those
    typed_by_out    does the type of `out` stand for a `dtype` that is not given?
    inplace     is there one that writes to the first tensor?
    function, method    is it published as such?
    node        the class name of its nodes, where that does not follow from the op's name
    """
    facts = {"kind": kind, "dims": dims, "new_dims": new_dims, "shapes": shapes, "shape": shape,
             "refuses": refuses, "out": out, "node": node, "namespace": namespace,
             "differentiable": differentiable, "nondiff": nondiff, "batch": batch, "view": view,
             "unsized": unsized, "doc": doc, "typed_by_out": typed_by_out}
    declaration = Declaration(schemas, kernel, facts, rules)
    declaration.twin = Function(declaration, bound=False)
    published: Any = in_front(declaration.twin)
    declaration.function = declaration.twin.published = published
    space = declaration.namespace
    name = declaration.name.removeprefix(f"{space}_")
    for i, text in enumerate(schemas):
        key = text.partition("(")[0] if i else declaration.name
        table.declared[key] = partial(_op_of, declaration, i)
    if function:
        public.setdefault(space, {})[name] = published
    if method:
        twin = Function(declaration, bound=True)
        twin.published = in_front(twin)
        setattr(Tensor, declaration.name, twin.published)
    if inplace:
        writing = InplaceFunction(declaration)
        writing.published = in_front(writing)
        setattr(Tensor, writing.name, writing.published)
    return published


def _op_of(declaration: Declaration, index: int) -> Op:
    return declaration.ops[index]


__all__ = ["Declaration", "Signature", "op", "parameters"]
