"""In-place forms: `add_` from `add`, the same kernel, the same node, one more write counted."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.c_functions import type_name as type_name_of
from flambeau._support.source_locations import bump, counter_of
from flambeau.core import dtypes
from flambeau.core.autograd.graph import next_order
from flambeau.core.calling import fast, overrides
from flambeau.core.calling.call import ANY
from flambeau.core.calling.overrides import intercept, intercept_canonical
from flambeau.core.devices import cpu
from flambeau.core.modes import grad_enabled, interceptors, levels
from flambeau.core.op import Op, table
from flambeau.core.promotion import c_name, convert, result_type, type_name
from flambeau.core.shapes import broadcast_shapes, is_expandable_to, written_shape_error
from flambeau.core.tensor import LEAF, Tensor, gradient_edge, new_tensor, plain_types, tensor_types
from flambeau.core.views import (
    Overwritten,
    check_inplace,
    count_write,
    rebase,
    rebase_to_zero_grad,
)
from flambeau.dispatch.members import member
from flambeau.dispatch.pointwise import check_types
from flambeau.kernels.moving.views import copy_into, has_internal_overlap
from flambeau.ops.node_names import known_as
from flambeau.ops.out_types import can_cast
from flambeau.ops.overlap import allows_internal_overlap, check_overlap, slot, write_changes


def check_stored(op_name: str, target: Tensor, result: np.ndarray) -> None:
    """Raise if `result` cannot be stored into `target`: its type or its shape do not fit."""
    _check_fit(target, result.shape, dtypes.from_numpy_dtype(result.dtype))


def _speaks_c(functional: Op, args: tuple[Any, ...]) -> bool:
    """Does PyTorch name types as C++ does? Where the bounds of `clamp` are numbers."""
    return functional.name.startswith("clamp") and not any(type(a) in tensor_types for a in args)


def _check_fit(target: Tensor, shape: tuple[int, ...], dtype: Any,
               in_c: bool = False) -> None:
    own = slot(target).shape
    if shape != own and not is_expandable_to(shape, own):
        raise written_shape_error(own, shape)
    if dtype is not target.dtype and not can_cast(dtype, target.dtype):
        wanted = c_name(target.dtype) if in_c else type_name(target.dtype)
        raise RuntimeError(f"result type {type_name(dtype)} can't be cast to the desired output "
                           f"type {wanted}")


def check_operands(functional: Op, target: Tensor, args: tuple[Any, ...]) -> None:
    """Raise if what a pointwise op gives for these would not fit into `target`: PyTorch asks that
    before it looks for a kernel."""
    operands = (target, *args)
    shapes = [a._array.shape for a in operands[:len(functional.tensors)]
              if type(a) in tensor_types]
    shape = broadcast_shapes(*shapes)
    _check_fit(target, shape, target.dtype)
    _check_fit(target, shape, type_of_result(functional, operands), _speaks_c(functional, args))


def type_of_result(op: Op, operands: tuple[Any, ...]) -> dtypes.dtype:
    """The type of what a pointwise op gives for these, whether or not it has a kernel for it."""
    if op.declaration.boolean:
        return dtypes.bool_
    values = [a._array if type(a) in tensor_types else a for a, name in zip(operands, op.tensors)
              if name not in op.conditions]
    found = result_type([v for v in values if isinstance(v, np.ndarray)],
                        [v for v in values if type(v) in (bool, int, float, complex)])
    if op.floating and not found.is_floating_point and not found.is_complex:
        found = dtypes.from_numpy_dtype(dtypes.default_float())
    return found


def make_inplace(functional: Op) -> Op:
    """`add_` from `add`: the same kernel, the same node, one more write counted."""
    op = Op(f"{functional.name}_", functional.kind, inplace=True, functional=functional,
            tensors=functional.tensors, namespace=functional.namespace,
            composite=functional.composite, doc=f"Write the result of `{functional.name}` into "
            "this tensor; returns the tensor.")
    op.function = op.call = fast.inplace_callable(op, _general_inplace(op, interceptors,
                                                                       plain_types))
    op.direct = _general_inplace(op, (), ANY)
    functional.inplace_op = op
    return op


def _general_inplace(op: Op, interceptors: Any, plain_types: Any) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any) -> Tensor:
        if interceptors:
            return intercept(op, (input, *args)) if op.composite \
                else intercept_canonical(op, (input, *args))
        if op.composite and levels.get():       # its parts go through the levels, then a copy does
            return input.copy_(op.functional.call(input.clone(), *args))
        if type(input) not in plain_types:
            return coerce_inplace(op, (input, *args))
        return write_result(op, input, args, {})
    return call


def coerce_inplace(op: Op, args: tuple[Any, ...]) -> Any:
    if overrides.needs_override(args):
        return overrides.call(op, args, {})
    if type(args[0]) not in tensor_types:
        raise TypeError(f"{op.name}(): argument 'input' (position 1) must be Tensor, not "
                        f"{type_name_of(args[0])}")
    return write_result(op, args[0], args[1:], {})


def write_result(op: Op, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any],
                 public: bool = False) -> Tensor:
    """Compute the functional op, then store its result and take over its node. The arguments are
    canonical, or those that users pass if it is the `public` function."""
    functional, memory = op.functional, slot(input)
    tracked = grad_enabled() and (input.requires_grad or any_requires_grad(args, kwargs))
    expanded = has_internal_overlap(memory) and allows_internal_overlap(functional)
    check_inplace(input, tracked, not expanded)
    if functional.schema is not None and functional.inplace_check is not None:
        functional.inplace_check(input)
    memory = slot(input)                        # a lazy clone has memory of its own from now on
    check_overlap(functional, input, args)
    source = input
    if tracked:
        source = _stand_in(input, copied=functional.composite or "self" in functional.saved)
    run = functional.function if public else functional.call
    try:
        result = run(source, *args, **kwargs)
    except RuntimeError:
        if functional.kind == "pointwise":
            check_types(functional, (input, *args))
            check_operands(functional, input, args)
        raise
    if type(result) in overrides.sparse_types:      # `mul_` of a dense tensor by a sparse one
        result = result.to_dense()
    if result is source and tracked:            # a node of its own, not that of the view
        result = table["clone"].call(result, None)
    values = result._array
    if values.shape != memory.shape and input._base is None and functional.declaration is not None \
            and functional.declaration.inplace_resizes:
        input._array = memory = np.empty(values.shape, memory.dtype)
    found = dtypes.from_numpy_dtype(values.dtype)
    if found is not input.dtype and functional.declaration is not None \
            and functional.declaration.typed_by_out \
            and any(isinstance(a, (np.dtype, dtypes.dtype)) for a in (*args, *kwargs.values())):
        raise RuntimeError(f"Bad in-place call: input tensor dtype {c_name(input.dtype)} and "
                           f"output tensor dtype {c_name(found)} should match")
    _check_fit(input, values.shape, found, _speaks_c(functional, args))
    if values.shape != memory.shape:
        raise written_shape_error(memory.shape, values.shape)
    if input._device is cpu:
        values = convert(values, memory.dtype)
        if type(input) in overrides.own_rules:
            stand_in: Any = input               # its memory does not hold what it shows
            stand_in._store(values)
        elif expanded:
            write_changes(functional.name, memory, memory.copy(), values)
        else:
            copy_into(memory, values)
    count_write(input)
    edge = result._edge
    if edge is not None and grad_enabled():
        edge = gradient_edge(result)
        if edge is not None:
            if result._array.dtype == memory.dtype:
                # later writes to the tensor are noticed where the node saved its result
                save_anew(edge.node, result._array, input)
                if functional.inplace_node:
                    edge.node.__class__ = known_as(type(edge.node), functional.inplace_node)
            rebase(input, edge)
    elif tracked and functional.inplace_node:
        rebase(input, _overwritten(functional, (source, *args), input))
    elif tracked and input._edge is not None:
        rebase_to_zero_grad(input)
    return input


def _overwritten(functional: Op, operands: tuple[Any, ...], target: Tensor) -> Any:
    """The node of an op that has no derivatives, where its result has a floating type."""
    tensors = [o if type(o) in tensor_types else None for o in operands[:len(functional.tensors)]]
    node: Any = known_as(Overwritten, functional.inplace_node)()
    node.edges = tuple([None if t is None else gradient_edge(t) for t in tensors])
    node.saved = tuple([None if t is None else t._array.shape for t in tensors])
    node.order, node.shape, node.dtype = next_order(), target._array.shape, target._array.dtype
    return node


def write(tensor: Tensor, values: Any) -> Tensor:
    """Store `values` (an array, or a number) into `tensor`, cutting what was there out of the
    graph: for `fill_` and `zero_`."""
    check_inplace(tensor, False, apart=False)
    if tensor._device is cpu:
        tensor._array[...] = convert(values, tensor._array.dtype) if isinstance(
            values, np.ndarray) else values
    count_write(tensor)
    if tensor._edge is not None and grad_enabled():
        rebase_to_zero_grad(tensor)
    return tensor


def any_requires_grad(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for arg in (*args, *kwargs.values()):
        if type(arg) in tensor_types:
            if arg.requires_grad:
                return True
        elif type(arg) in (tuple, list) and any_requires_grad(tuple(arg), {}):
            return True
    return False


def _stand_in(tensor: Tensor, copied: bool) -> Tensor:
    """The tensor as it is before the write: its history, and its values if a node will need them
    afterwards."""
    source = new_tensor()
    if tensor._device is not cpu:
        source.__class__ = type(tensor)
    array = tensor._array
    copied = copied and tensor._device is cpu and type(tensor) not in overrides.own_rules
    source._array = array.copy() if copied else array
    source._base = source._counter = None
    source._edge = None if tensor._edge is None else gradient_edge(tensor)
    return source


def save_anew(node: Any, array: np.ndarray, tensor: Tensor) -> None:
    """Where `node` saved `array`, its result, it saves `tensor` from now on."""
    if "result" in node.saved_kinds and node.saved is not None:
        counter = counter_of(tensor)
        node.saved = tuple([
            (tensor._array, counter, counter[0], entry[3])
            if kind == "result" and type(entry) is tuple and entry[0] is array else entry
            for kind, entry in zip(node.saved_kinds, node.saved)])


# ---- writes to the shape alone -------------------------------------------------------------------

def memory_of(value: Tensor, heir: Tensor) -> np.ndarray:
    """The array that `value` is on, for `heir`, which is to show from now on what `value` does."""
    if not (value._conjugated or value._negated or heir._conjugated or heir._negated):
        return value._array
    view: Any = value if value._conjugated or value._negated else heir
    return view._inherited(value, heir)


_SQUEEZES = {f"SqueezeBackward{i}": f"SqueezeBackward{i + 3}" for i in range(3)}


def _rename_view(node: Any, name: str) -> None:
    """Nodes of views that a tensor has become bear other numbers than those of new views."""
    own = type(node).__name__
    seen = "TBackward1" if name == "t" else _SQUEEZES.get(own) or f"{own[:-1]}1"
    node.__class__ = known_as(type(node), seen)


def becomes_view(view: Callable[..., Tensor], *parameters: str, function: bool = False) -> None:
    """Declare `t_`, `squeeze_` …: the tensor becomes the `view` of it. Of each schema the name and
    what it takes beside the tensor."""
    name = parameters[0].partition("(")[0].removesuffix("_")

    def method(self: Any, *args: Any) -> Tensor:
        args = tuple([arg for arg in args if arg is not None])
        check_inplace(self, False, apart=False)
        if type(self) not in plain_types and hasattr(self, "_bdim"):
            self.become_view(lambda before: view(before, *args))
            return self
        result = view(self, *args)
        if result is self:
            return self
        if result._tangents is not None:
            self._tangents = result._tangents
        if type(self) in overrides.sparse_types:    # whose views are tensors of their own
            self.data, self._edge = result, result._edge
            bump(self)
            return self
        if self._inference:                         # a tensor without history, as its views
            self._array = slot(result)
            count_write(self)
            return self
        found = result._view
        self._array = slot(result)
        bump(self)
        if found.node is not None and found.node is not LEAF:
            _rename_view(found.node, name)
        if self._base is None:
            if found.node is not None and found.node is not LEAF:
                self._edge = found.node
            return self
        own = self._view                        # `replay` stays, as PyTorch's does
        if grad_enabled() and not own.made:     # else the next look finds it a node, or refuses
            own.node, own.version = found.node, counter_of(self)[0]
        return self
    member(*[text.replace("(", "(Tensor(a!) self, ").replace(", )", ")") + " -> Tensor(a!)"
             for text in parameters], body=method, function=function,
           explicit=True, doc=f"`{name}` in place; returns the tensor.")


