"""In-place writes, and what they mean for tensors that share memory.

All tensors on one memory share a write counter. A node remembers the version of what it saved, and
a backward pass refuses a saved tensor that was written to since. A write to a *view* changes the
history of its base: the base gets a `CopySlices` node, which sends the gradient of the written part
through the op that wrote, and the rest around it. Views of the base then find themselves a new node
when next asked (`tensor.gradient_edge`).

    >>> import flambeau
    >>> w = flambeau.ones(2, requires_grad=True)
    >>> base = flambeau.zeros(3)
    >>> base[:2].mul_(0).add_(w)
    tensor([1., 1.], grad_fn=<AsStridedBackward0>)
    >>> base.grad_fn.name()
    'CopySlices'
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.core import dtypes, graph, overrides
from flambeau.core.devices import cpu
from flambeau.core.graph import Node, next_order
from flambeau.core.modes import grad_enabled, intercept, interceptors, is_inference_mode_enabled
from flambeau.core.op import ANY, SCALARS, Op, into, watched
from flambeau.core.promotion import can_cast, convert, scalar_cache, type_name
from flambeau.core.shapes import Size, is_expandable_to
from flambeau.core.tensor import (LEAF, LOOKUP, Tensor, alias, array_strides, basis, counter_of,
                                  gradient_edge, new_tensor, plain, tensor_types)

# ---- may this tensor be written to? -------------------------------------------------------------

_FORBIDDEN = {
    "multi_output": "This view is the output of a function that returns multiple views. Such "
                    "functions do not allow the output views to be modified inplace. You should "
                    "replace the inplace operation by an out-of-place one.",
    "no_grad": "A view was created in no_grad mode and is being modified inplace with grad mode "
               "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
               "You can clarify your code by moving both the view and the inplace either both "
               "inside the no_grad block (if you don't want the inplace to be tracked) or both "
               "outside (if you want the inplace to be tracked).",
    "inference": "A view was created in inference mode and is being modified inplace in normal "
                 "mode. Given that this use case is ambiguous and error-prone, it is forbidden. ",
    "custom": "This view was created inside a custom Function (or because an input was returned "
              "as-is) and the autograd logic to handle view+inplace would override the custom "
              "backward associated with the custom Function, leading to incorrect gradients. This "
              "behavior is forbidden. You can fix this by cloning the output of the custom "
              "Function.",
}
_FORBIDDEN["no_grad_multi_output"] = _FORBIDDEN["no_grad"]


def check_inplace(tensor: Tensor, needs_grad: bool) -> None:
    """Raise if autograd or aliasing forbids writing to `tensor` now.

    `needs_grad`: will the written value require grad?
    """
    array = tensor._array
    if 0 in array.strides and array.size > 1 and any(
            s == 0 and n > 1 for s, n in zip(array.strides, array.shape)) \
            and tensor._device is cpu and not overrides.internal_types.intersection(
                (type(tensor),)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor "
                           "refers to a single memory location. Please clone() the tensor before "
                           "performing the operation.")
    if tensor._inference and not is_inference_mode_enabled():
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not "
                           "allowed. You can make a clone to get a normal tensor before doing "
                           "inplace update.")
    if not grad_enabled():
        return
    edge = tensor._edge
    if edge is LEAF:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place "
                           "operation.")
    if edge is LOOKUP:
        base_edge = gradient_edge(tensor._base)
        made = tensor._view.made
        if made and (needs_grad or base_edge is not None):
            raise RuntimeError("Output 0 of " + _producer(tensor) + " is a view and is being "
                               "modified inplace. " + _FORBIDDEN[made])
        if base_edge is tensor._base:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an "
                               "in-place operation.")


def _producer(tensor: Tensor) -> str:
    node = tensor._view.node
    return node.node.name() if node is not None else "a view op"


def check_stored(op_name: str, target: Tensor, result: np.ndarray) -> None:
    """Raise if `result` cannot be stored into `target`: its type or its shape do not fit."""
    found, wanted = dtypes.from_numpy_dtype(result.dtype), target.dtype
    if found is not wanted and not can_cast(found, wanted):
        raise RuntimeError(f"result type {type_name(found)} can't be cast to the desired output "
                           f"type {type_name(wanted)}")
    if result.shape != target._array.shape and not is_expandable_to(result.shape,
                                                                    target._array.shape):
        raise RuntimeError(f"output with shape {list(target._array.shape)} doesn't match the "
                           f"broadcast shape {list(result.shape)}")


# ---- history after a write ----------------------------------------------------------------------

class CopySlices(Node):
    """The node of a base, one of whose views was written to.

    The first edge goes to the base's old history, the others are those of the op that wrote. The
    gradient of the view's part goes through that op; what comes out for the old values of the part
    takes its place in the gradient of the base.
    """

    __slots__ = ()
    op = None

    def apply(self, grad: Tensor) -> Any:
        inner, take, put = self.saved
        inner_grads = inner.apply(take(grad))
        first = inner_grads[0]
        rest = list(inner_grads[1:])
        if self.edges[0] is None:
            return (None, *rest)
        part = take(grad)
        old = basis.zeros_like(part) if first is None else basis.sum_to_size(
            first, part._array.shape)
        return (put(grad, old), *rest)


CopySlices.__module__ = "torch.autograd"


def rebase(tensor: Tensor, node: Any) -> None:
    """Make `node` (or an Output, or None) the history of `tensor`, which was just written to."""
    if tensor._edge is not LOOKUP:
        old = tensor._edge
        if tensor._retains_grad:
            graph.move_retained(tensor, old, node)
        tensor._edge = node
        return
    base = tensor._base
    base_edge = gradient_edge_before_write(base)
    if node is None and base_edge is None:
        return
    old = tensor._view.node
    slices = CopySlices()
    inner = node.node if node is not None else _nothing
    slices.edges = (base_edge, *(inner.edges[1:] if node is not None else ()))
    slices.order = next_order()
    slices.shape, slices.dtype = base._array.shape, base._array.dtype
    take, put = _access(tensor, base)
    slices.saved = (inner, take, put)
    base._edge = slices
    view = tensor._view
    view.version = -1                       # find a new node when next asked
    if tensor._retains_grad:
        graph.move_retained(tensor, old, gradient_edge(tensor))


class _Nothing(Node):
    """The op that wrote was not differentiable: nothing flows to what the part was before."""

    __slots__ = ()

    def apply(self, grad: Any) -> Any:
        return (None,)


_nothing = _Nothing()
_nothing.edges, _nothing.saved, _nothing.order = (None,), (), 0


def gradient_edge_before_write(base: Tensor) -> Any:
    edge = base._edge
    return base if edge is LEAF else edge


def _access(view: Tensor, base: Tensor) -> tuple[Any, Any]:
    """Functions that take the view's part out of a gradient of the base, and put one into it."""
    replay = view._view.replay
    if replay is not None:
        def put_replayed(grad: Tensor, part: Tensor) -> Tensor:
            whole = basis.clone(grad)
            replay(whole).copy_(part)
            return whole
        return replay, put_replayed
    array, whole = view._array, base._array
    shape, strides = array.shape, array_strides(array)
    offset = view.storage_offset() - base.storage_offset()
    own = array_strides(whole)               # the gradient is laid out as the base is
    return (lambda grad: basis.part(basis.with_strides(grad, own), shape, strides, offset),
            lambda grad, part: basis.as_strided_scatter(basis.with_strides(grad, own), part, shape,
                                                        strides, offset))


def bump(tensor: Tensor) -> None:
    """Count one write to the tensor's memory."""
    counter = tensor._counter
    if counter is None:
        tensor._counter = [1]
    else:
        counter[0] += 1


def write(tensor: Tensor, values: Any) -> Tensor:
    """Store `values` (an array, or a number) into `tensor`, cutting what was there out of the
    graph: for `fill_`, `zero_` and the random fills."""
    check_inplace(tensor, False)
    if tensor._device is cpu:
        tensor._array[...] = convert(values, tensor._array.dtype) if isinstance(
            values, np.ndarray) else values
    bump(tensor)
    if tensor._edge is not None and grad_enabled():
        rebase_to_constant(tensor)
    return tensor


def rebase_to_constant(tensor: Tensor) -> None:
    edge = tensor._edge
    if edge is LOOKUP:
        if gradient_edge_before_write(tensor._base) is not None:
            rebase(tensor, None)
    elif edge is not None:
        node = Constant()
        node.edges, node.saved, node.order = (edge,), (), next_order()
        node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
        tensor._edge = node


class Constant(Node):
    """A tensor whose values were overwritten with constants: nothing flows on."""

    __slots__ = ()
    frees = False

    def apply(self, grad: Tensor) -> Any:
        return (basis.zeros_like(grad),)

    def name(self) -> str:
        return "FillBackward0"


# ---- in-place ops -------------------------------------------------------------------------------

def make_inplace(functional: Op) -> Callable[..., Any]:
    """`add_` from `add`: the same kernel, the same node, one more write counted."""
    op = Op(f"{functional.name}_", functional.kind, inplace=True, functional=functional,
            tensors=functional.tensors, arguments=functional.arguments,
            namespace=functional.namespace, doc=_inplace_doc(functional),
            composite=functional.composite, fused=functional.fused)
    pointwise = functional.kind == "pointwise" and len(functional.tensors) == 2
    if pointwise:
        op.function = _pointwise_inplace(op, interceptors, plain)
        op.call, op.direct = op.function, _pointwise_inplace(op, (), ANY)
    else:
        op.function = _general_inplace(op, interceptors, plain, True)
        op.call = _general_inplace(op, interceptors, plain, functional.composite)
        op.direct = _general_inplace(op, (), ANY, functional.composite)
        if functional.composite:
            op.plain_call = op.direct
    function = op.function
    function.op = op
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = "torch"
    function.__doc__ = op.doc
    functional.inplace_op = op
    return function


def _inplace_doc(functional: Op) -> str:
    return f"Write the result of `{functional.name}` into this tensor; returns the tensor."


def _pointwise_inplace(op: Op, interceptors: Any, plain: Any) -> Callable[..., Any]:
    functional = op.functional
    kernel, floating, rejected = functional.kernel, functional.floating, functional.reject

    def call(input: Tensor, other: Any) -> Tensor:
        if interceptors:
            return intercept(op, (input, other))
        if type(input) not in plain:
            return coerce_inplace(op, (input, other), {})
        x, y = input._array, None
        edge = input._edge
        if type(other) in plain:
            if other._array.dtype is x.dtype and (other._edge is None or not grad_enabled()):
                y = other._array
        elif type(other) in SCALARS:
            y = scalar_cache.get((x.dtype, other))
        if y is None or (edge is not None and grad_enabled()) or floating or rejected \
                or not x.flags.c_contiguous or input._inference:
            return write_result(op, input, (other,), {})
        try:
            r = kernel(x, y, x)
        except (ValueError, TypeError):
            return write_result(op, input, (other,), {})
        if r is not x:
            return write_result(op, input, (other,), {})
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input
    return call


def _general_inplace(op: Op, interceptors: Any, plain: Any, public: bool) -> Callable[..., Any]:
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if interceptors:
            return intercept(op, (input, *args), kwargs)
        if type(input) not in plain:
            return coerce_inplace(op, (input, *args), kwargs)
        return write_result(op, input, args, kwargs, public)
    return call


def coerce_inplace(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if overrides.wanted(args, kwargs):
        return overrides.call(op, args, kwargs)
    if type(args[0]) not in tensor_types:
        raise TypeError(f"{op.name}(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(args[0]).__name__}")
    if args[0]._device is not cpu:
        op.functional.function(*args, **kwargs)
        return args[0]
    return write_result(op, args[0], args[1:], kwargs)


def write_result(op: Op, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any],
                 public: bool = True) -> Tensor:
    """Compute the functional op, then store its result and take over its node."""
    functional = op.functional
    tracked = grad_enabled() and (input._edge is not None or _any_requires_grad(args, kwargs))
    check_inplace(input, tracked)
    source = input
    if tracked:
        source = _stand_in(input, copied=functional.composite or "self" in functional.saved)
    run = functional.function if public else functional.call
    result = run(source, *args, **kwargs)
    values = result._array
    check_stored(op.name, input, values)
    if values.shape != input._array.shape:
        raise RuntimeError(f"output with shape {list(input._array.shape)} doesn't match the "
                           f"broadcast shape {list(values.shape)}")
    input._array[...] = convert(values, input._array.dtype)
    bump(input)
    edge = result._edge
    if edge is not None and grad_enabled():
        edge = gradient_edge(result)
        if edge is not None:
            if result._array.dtype != input._array.dtype:
                cast = basis.cast(result, input._array.dtype)
                edge = gradient_edge(cast)
            else:
                _point_results_at(edge, result, input)
            rebase(input, edge)
    elif tracked and input._edge is not None:
        rebase_to_constant(input)
    return input


def _any_requires_grad(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for arg in (*args, *kwargs.values()):
        if type(arg) in tensor_types:
            if arg.requires_grad:
                return True
        elif type(arg) in (tuple, list) and _any_requires_grad(tuple(arg), {}):
            return True
    return False


def _stand_in(tensor: Tensor, copied: bool) -> Tensor:
    """The tensor as it is before the write: its history, and its values if a node will need them
    afterwards."""
    source = new_tensor()
    source._array = tensor._array.copy() if copied else tensor._array
    source._base = source._counter = None
    source._edge = None if tensor._edge is None else gradient_edge(tensor)
    return source


def _point_results_at(edge: Any, result: Tensor, target: Tensor) -> None:
    """A node that saved its result saves the written tensor instead: later writes are noticed."""
    node = edge.node
    if "result" in node.saved_kinds and node.saved is not None:
        counter = counter_of(target)
        node.saved = tuple([
            (target._array, counter, counter[0], entry[3])
            if kind == "result" and type(entry) is tuple and entry[0] is result._array else entry
            for kind, entry in zip(node.saved_kinds, node.saved)])


# ---- out= ---------------------------------------------------------------------------------------

def store(out: Any, op: Any, result: Any) -> Any:
    """Store the result of `op` into `out=`, a tensor (or one for each result), and return that."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not "
                            f"{type(out).__name__}")
        for one, value in zip(out, result):
            store_one(one, op, value)
        return result if type(result) is tuple and False else type(result)(*out) \
            if hasattr(result, "_fields") else tuple(out)
    if type(out) not in tensor_types:
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    return store_one(out, op, result)


def store_one(out: Tensor, op: Any, result: Tensor) -> Tensor:
    if grad_enabled() and (out.requires_grad or result.requires_grad):
        raise RuntimeError(f"{op.name}(): functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
    if out is result:
        return out
    if out._device != result._device:
        raise RuntimeError(f"Expected all tensors to be on the same device, but got out on "
                           f"{out.device}, different from other tensors on {result.device}")
    found = result.dtype
    if found is not out.dtype and not can_cast(found, out.dtype):
        raise RuntimeError(f"result type {type_name(found)} can't be cast to the desired output "
                           f"type {type_name(out.dtype)}")
    if out._array.shape != result._array.shape:
        resize_output(out, result._array.shape)
    out._array[...] = convert(result._array, out._array.dtype)
    bump(out)
    return out


def resize_output(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give `out` another shape; a warning if it had elements, as torch gives one."""
    if out._array.size:
        import warnings
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out._array.shape)}, which does not match the required output shape "
            f"{list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs "
            "will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning, stacklevel=5)
    out._array = np.empty(shape, out._array.dtype)


__all__ = ["CopySlices", "bump", "check_inplace", "into", "make_inplace", "rebase", "store",
           "watched", "write", "Size", "alias"]
