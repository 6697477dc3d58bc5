"""Forward mode: derivatives that travel with the values.

While a `ForwardLevel` is entered, a tensor may carry a tangent for it, in `_tangents[level]`. Each
op then also computes the tangent of its result, by ops: so levels nest, and reverse mode goes
through. A linear op's tangent is the op itself; a pointwise op's follows from its derivative; an op
that declares `jvp` says it; for all others the reverse rule is transposed, which is exact, since a
reverse rule is linear in the gradient: its own reverse rule is the forward rule.
"""
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flambeau._support.scopes import within
from flambeau.core import late_bound
from flambeau.core.autograd import engine
from flambeau.core.autograd.formulas import (
    chain_rule_op,
    conjugate,
    is_unit,
    multiply_by_constant,
    parameters,
)
from flambeau.core.autograd.graph import Output, Packed, next_order, save_input, save_result
from flambeau.core.calling.overrides import sparse_types
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import Level, grad_enabled, grad_mode, inference
from flambeau.core.op import Op
from flambeau.core.tensor import (
    LEAF,
    Tensor,
    array_strides,
    gradient_edge,
    new_tensor,
    plain_types,
    tensor_types,
)
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.inplace import check_stored
from flambeau.ops.pointwise.arithmetic import add
from flambeau.ops.pointwise.complex import real_part, view_as_real
from flambeau.ops.view.conjugate_views import below, conj, neg_view
from flambeau.ops.view.conversion import cast, clone, detach
from flambeau.ops.view.copying import laid_out, with_strides
from flambeau.ops.view.shape import expand_to
from flambeau.ops.view.strided import geometry, strided_window

if TYPE_CHECKING:
    from flambeau.ops.sparse.tensors import SparseTensor


class ForwardLevel(Level):
    """One level of forward mode."""

    derives = keeps_memory = True

    def __call__(self, op: Op, canonical: tuple[Any, ...]) -> Any:
        if inference.get():                         # nothing is derived, in either mode
            return op.call(*canonical)
        functional = op.functional if op.inplace else op
        inputs = functional.inputs(canonical)
        tangents = [None if type(t) not in tensor_types else self.tangent(t) for t in inputs]
        if all(t is None for t in tangents):
            return op.call(*canonical)
        if (op.view or op.inplace) and tangents[0] is not None:
            tangents[0] = self._laid_out(inputs[0], tangents[0])
        if op.inplace:
            return self._inplace(op, canonical, inputs, tangents)
        result = op.call(*canonical)
        if not functional.is_differentiable:        # among them `detach`
            return result
        found = derivative(op, canonical, tangents, result)
        if op.returns is None:
            if not op.view and any(found is t for t in tangents if t is not None):
                found = clone(found)          # a write to the result must not reach it
            if result._array.dtype in FLOATING:
                self.set_tangent(result, found if op.view else _in_layout_of(result, found))
            keep_state((result,))
        else:
            for one, tangent in zip(result, found):
                if tangent is not None and one._array.dtype in FLOATING:
                    self.set_tangent(one, tangent if op.view else _in_layout_of(one, tangent))
            keep_state(result)
        return result

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """The tangent of `tensor` at this level, if it has one."""
        own = tensor._tangents
        if own is not None and self in own:
            return own[self]
        base = tensor._base
        if base is not None and base._tangents is not None and self in base._tangents:
            if tensor._conjugated or tensor._negated:
                return self._turned_tangent(tensor)
            array = tensor._array
            whole, start = self._laid_out(base, base._tangents[self]), base.storage_offset()
            if array.dtype != base._array.dtype:            # parts of complex numbers
                whole, start = view_as_real(whole), 2 * start
            tangent = strided_window(whole, array.shape, array_strides(array),
                                     tensor.storage_offset() - start)
            self.set_tangent(tensor, tangent)
            return tangent
        return None

    def _turned_tangent(self, view: Any) -> Tensor | None:
        """That of a view which conjugates or negates what its base is on, as such a view."""
        tangent = self.tangent(below(view))
        if tangent is not None:
            tangent = conj(tangent) if view._conjugated else tangent
            tangent = neg_view(tangent) if view._negated else tangent
            self.set_tangent(view, tangent)
        return tangent

    def set_tangent(self, tensor: Tensor, tangent: Tensor | None) -> None:
        if tangent is None:
            return
        if tensor._tangents is None:
            tensor._tangents = {}
        tensor._tangents[self] = tangent

    def _laid_out(self, tensor: Tensor, tangent: Tensor) -> Tensor:
        """The tangent, in other memory if views and writes that `tensor` allows would not work."""
        if (tangent._conjugated, tangent._negated) != (tensor._conjugated, tensor._negated) \
                and not (tensor._conjugated or tensor._negated):
            tangent = tangent.resolve_conj().resolve_neg()
            self.set_tangent(tensor, tangent)
        shape, strides, found = tensor._array.shape, tensor.stride(), tangent.stride()
        if 0 in shape or strides == found:
            return tangent
        wide = [d for d, n in enumerate(shape) if n > 1]
        joined = [(d, e) for d, e in pairwise(wide) if strides[d] == shape[e] * strides[e]]
        if all(found[d] == shape[e] * found[e] for d, e in joined) and not any(
                found[d] == 0 or (strides[d] == 1 != found[d]) for d in wide):
            return tangent
        dense = with_strides(tangent, strides)
        self.set_tangent(tensor, dense)
        return dense

    def hide_tangent(self, view: Tensor) -> None:
        """Make a view of a dual tensor one without a tangent."""
        view._tangents = {self: None}

    def _inplace(self, op: Op, canonical: tuple[Any, ...], inputs: Any, tangents: list[Any]) -> Any:
        """Compute out of place, with values and tangents of before the write, which a graph may
        save; then copy. The tangent is written to, too, in place: views of the tensor see it."""
        target, functional = canonical[0], op.functional
        before, own = clone(target), tangents[0]
        if own is not None:
            saved = clone(own)
            self.set_tangent(before, saved)
            tangents = [saved if t is own else t for t in tangents]
        arguments = functional.with_inputs(canonical, [before if t is target else t
                                                       for t in inputs])
        result = functional.call(*arguments)
        tangent = derivative(functional, arguments, tangents, result)
        check_stored(op.name, target, result._array)
        self.set_tangent(result, tangent)
        keep_state((result,))
        memory = self._tangent_to_write(target, own, tangent)
        target.copy_(result)
        if memory is None:
            self.set_tangent(target, tangent)
        else:
            memory.zero_() if tangent is None else memory.copy_(tangent)
        return target

    def _tangent_to_write(self, target: Tensor, own: Tensor | None, like: Any) -> Tensor | None:
        """The tangent of `target`, where views of it, or what it is a view of, see what is written
        there; with a place for each slice of `like`. None if nothing else can see it."""
        base = target._base
        if own is None and base is None:
            return None
        owner = target if base is None or (base._tangents is None and own is not None) else base
        held = None if owner._tangents is None else owner._tangents.get(self)
        if held is None:
            held = zeros_like(owner)
        spread = like._materialize(held) if hasattr(like, "_level") else held
        if spread is not held or own is None:
            self.set_tangent(owner, spread)
            if owner is not target and target._tangents is not None:
                target._tangents.pop(self, None)
        return self.tangent(target)


def _in_layout_of(result: Tensor, tangent: Tensor) -> Tensor:
    """The tangent in memory as the result, unless elements of that share memory."""
    array = result._array
    if tangent is None or type(tangent) not in plain_types or (
            array.strides == tangent._array.strides) or 0 in array.strides or all(
            s == t for n, s, t in zip(array.shape, array.strides, tangent._array.strides) if n > 1):
        return tangent
    return laid_out(tangent, array_strides(array))


def check_tangent(primal: Tensor, tangent: Tensor) -> None:
    """Raise if these two make no dual tensor."""
    for what, tensor in (("primal", primal), ("tangent", tangent)):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: "
                             f"{tensor.dtype}")
    if primal.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that "
                           "of the original Tensor, this is not supported. Tensor is of size "
                           f"{list(primal.shape)} while the given forward gradient is of size "
                           f"{list(tangent.shape)}.")


def keep_state(results: Any) -> None:
    """A node that saved its results must give them back with their tangents."""
    edges = [r._edge for r in results if r._edge is not LEAF and type(r._edge) not in tensor_types]
    node = next((edge.node for edge in edges if hasattr(edge, "node")), None)
    if node is not None and "result" in node.saved_kinds:
        node.result_state = [(type(r), r.__dict__) for r in results]


def derivative(op: Op, canonical: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """The tangent(s) of `result`, given those of the tensor arguments (None where zero)."""
    try:
        return _derivative(op, canonical, tangents, result)
    except NotImplementedError as error:
        raise NotImplementedError(f"Trying to use forward AD with {op.name} that does not support "
                                  f"it: {error}") from None


def _derivative(op: Op, canonical: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    inputs = op.inputs(canonical)
    if op.jvp_rule is not None:
        return _declared_jvp(op, canonical, inputs, tangents, result)
    if op.kind == "pointwise":
        return _pointwise_jvp(op, canonical, tangents, result)
    if op.kind == "linear":
        rules = [op.rules.get(t) for t in op.tensors]
        moving = [op.variadic or op.vjp is not None or rules[i] is not None
                  or (i == 0 and not op.is_differentiable) for i in range(len(inputs))]
        replaced = [t if t is None or not m else zeros_like(t) if tangent is None else tangent
                    for t, tangent, m in zip(inputs, tangents, moving)]
        return op.call(*op.with_inputs(canonical, replaced))
    if op.kind == "multilinear":
        total = None
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                replaced = [*inputs[:i], tangent, *inputs[i + 1:]]
                term = op.call(*op.with_inputs(canonical, replaced))
                total = term if total is None else add(total, term)
        return total
    return _transposed_vjp(op, canonical, inputs, tangents, result)


def named_values(op: Op, canonical: tuple[Any, ...], result: Any) -> dict[str, Any]:
    """Everything that a formula may name."""
    values: dict[str, Any] = {}
    if op.variadic:
        values[op.tensors[0]] = canonical[0]
        for i in range(1, 3):
            values[f"{op.tensors[0]}_from{i}"] = canonical[0][i:]
        values[op.tensors[0] + "_shapes"] = [t._array.shape for t in canonical[0]]
        values[op.tensors[0] + "_dtypes"] = [t._array.dtype for t in canonical[0]]
        values.update(zip(op.params, canonical[1:]))
    else:
        values.update(zip(op.tensors, canonical))
        for name, tensor in zip(op.tensors, canonical):
            if type(tensor) in tensor_types:
                values[name + "_shape"] = tensor._array.shape
                values[name + "_dtype"] = tensor._array.dtype
                if f"{name}_geometry" in op.saved:
                    values[f"{name}_geometry"] = geometry(tensor)
        values.update(zip(op.params, canonical[len(op.tensors):]))
    if op.returns is None:
        values["result"] = result
    else:
        values["result"] = result[0]
        values.update({f"result{i}": r for i, r in enumerate(result)})
        if op.schema is not None:
            values.update(zip(op.schema.result_names, result))
    return values


def _declared_jvp(op: Op, canonical: Any, inputs: Any, tangents: list[Any], result: Any) -> Any:
    values = named_values(op, canonical, result) | {"tangents": tangents}
    for name, tensor, tangent in zip(op.tensors, inputs, tangents):
        if tangent is None and tensor is not None:
            tangent = zeros_like(tensor) if tensor._array.dtype in FLOATING else None
        values[name + "_t"] = tangent
    if op.variadic:
        values[op.tensors[0] + "_t"] = [zeros_like(t) if d is None else d
                                        for t, d in zip(inputs, tangents)]
    return op.jvp_rule(*[values[n] for n in parameters(op.jvp_rule)])


def _pointwise_jvp(op: Op, canonical: Any, tangents: list[Any], result: Any) -> Any:
    values, total = named_values(op, canonical, result), None
    for i, (name, tangent) in enumerate(zip(op.tensors, tangents)):
        if tangent is None:
            continue
        if op.vjp is not None:
            values["grad"], values["needs"] = tangent, [j == i for j in range(len(tangents))]
            term = op.vjp(*[values[n] for n in parameters(op.vjp)])
            term = term[i] if type(term) in (tuple, list) else term
            if term is None:            # the result does not depend on that argument
                continue
        else:
            rule = op.rules[name]
            if rule is None:
                continue
            named = parameters(rule)
            if "grad" in named:                 # the whole gradient
                values["grad"] = conjugate(tangent)
            factor = rule(*[values[n] for n in named]) if callable(rule) else rule
            if "grad" in named:
                term = conjugate(factor)
            elif factor is rule:
                term = multiply_by_constant(tangent, factor)
            elif is_unit(rule, factor):         # a tangent of its own, which may be written to
                term = clone(tangent) if factor == 1 else multiply_by_constant(tangent, factor)
            else:
                term = getattr(late_bound, chain_rule_op(rule))(tangent, factor)
        total = term if total is None else add(total, term)
    return None if total is None else fitted(total, result)


def fitted(tangent: Tensor, result: Tensor) -> Tensor:
    """A tangent in the shape and type of the value."""
    if tangent._array.shape != result._array.shape:
        tangent = expand_to(tangent, result._array.shape)
    if tangent._array.dtype != result._array.dtype:
        if tangent._array.dtype.kind in "cW" and result._array.dtype.kind not in "cW":
            tangent = real_part(tangent)
        tangent = cast(tangent, result._array.dtype)
    return tangent


def _transposed_vjp(op: Op, canonical: Any, inputs: Any, tangents: list[Any], result: Any) -> Any:
    """Forward mode out of the reverse rule: with v(u) = the reverse rule, the tangent is the
    gradient by u of <v(u), t>."""
    if not op.is_differentiable:
        return None if op.returns is None else [None] * len(result)
    results = (result,) if op.returns is None else tuple(result)
    with_graph = grad_enabled()
    covectors, roots = within(grad_mode, True, _reverse_rule, op, canonical, inputs, tangents,
                              results)
    wanted = [u for u in covectors if u._edge is LEAF]
    if not roots:
        found = [None] * len(wanted)
    else:
        found = engine.run(roots, with_graph, with_graph, wanted, accumulate=False)
    by_id = {id(u): f for u, f in zip(wanted, found)}
    answers = []
    for u, r in zip(covectors, results):
        f = by_id.get(id(u))
        if f is None and r._array.dtype in FLOATING:
            f = zeros_like(detach(r))
        answers.append(f)
    return answers[0] if op.returns is None else answers


def _zeros_of_sparse(tensor: SparseTensor) -> Tensor:
    from flambeau.ops.sparse.tensors import zero_values  # what few programs need
    return zero_values(tensor)


def _reverse_rule(op: Op, canonical: Any, inputs: Any, tangents: list[Any], results: Any) -> Any:
    """Covectors u of the results, and of v(u) the edges with the tangents that go there."""
    covectors = []
    for r in results:
        u = _zeros_of_sparse(r) if type(r) in sparse_types else zeros_like(detach(r))
        u._edge = LEAF if u._array.dtype in FLOATING else None
        covectors.append(u)
    node = rule_node(op, canonical, inputs, tangents, results)
    gradients = node.apply(covectors[0] if op.returns is None else covectors)
    roots = []
    for g, t, source in zip(gradients, tangents, inputs):
        if g is None or t is None or type(g) not in tensor_types or g._edge is None:
            continue
        g = engine.fit(g, source._array.shape, source._array.dtype, None, 0)
        edge = gradient_edge(g)
        if edge is not None:
            roots.append((edge, t))
    return covectors, roots


def rule_node(op: Op, canonical: Any, inputs: Any, needed: list[Any], results: Any) -> Any:
    """A node of `op` that no graph holds, to apply its reverse rule."""
    node = op.Backward()
    node.edges = tuple([None if n is None else True for n in needed])
    node.order = next_order()
    if op.returns is None:
        node.shape, node.dtype = results[0]._array.shape, results[0]._array.dtype
    else:
        node.outputs = len(results)
        node.results = [(r._array.shape, r._array.dtype) for r in results]
    node.result_state = [(type(r), r.__dict__) for r in results]
    saved = []
    values = named_values(op, canonical, results[0] if op.returns is None else results)
    for name, kind in zip(op.saved, op.Backward.saved_kinds):
        if kind == "tensor":
            saved.append(save_input(values[name]))
        elif kind == "tensors":
            saved.append([save_input(t) for t in values[name]])
        elif kind == "result":
            saved.append(None)
        else:
            saved.append(values.get(name))
    node.saved = tuple(saved)
    # results are handed over as they are, not rebuilt: they may have a history of their own
    if "result" in op.Backward.saved_kinds:
        entries = list(node.saved)
        for i, (kind, which) in enumerate(op.plan):
            if kind == "result":
                entries[i] = _pack_unchanged(results[which])
        node.saved = tuple(entries)
    return node


def _pack_unchanged(result: Tensor) -> Packed:
    """An entry of saved values from which a formula gets this very tensor."""
    return Packed(result, lambda value: value, None)


__all__ = ["ForwardLevel", "Output", "check_tangent", "derivative", "new_tensor", "save_result"]
