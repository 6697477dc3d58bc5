"""In-place writes, and what they mean for tensors that share memory.

All tensors on one memory share a write counter. A node remembers the version of what it saved, and
a backward pass refuses a saved tensor that was written to since. A write to a *view* changes the
history of its base: the base gets a `CopySlices` node, which sends the gradient of the written part
through the op that wrote, and the rest around it. Views of the base then find themselves a new node
when next asked (`tensor.gradient_edge`).

`ops/inplace.write_result` tells the story in order: `check_inplace`, the op on a stand-in for the
tensor, the copy of its result, the count (`count_write`), and `rebase`, which relies on the count.

    >>> import flambeau
    >>> w = flambeau.ones(2, requires_grad=True)
    >>> base = flambeau.zeros(3)
    >>> base[:2].mul_(0).add_(w)
    tensor([1., 1.], grad_fn=<AsStridedBackward0>)
    >>> base.grad_fn.name()
    'torch::autograd::CopySlices'
"""
from __future__ import annotations

from typing import Any

from flambeau._support.scopes import within
from flambeau._support.source_locations import bump
from flambeau.core import late_bound
from flambeau.core.autograd.backward_errors import op_name
from flambeau.core.autograd.graph import Node, next_order
from flambeau.core.autograd.hooks import move_retained_grad
from flambeau.core.autograd.recording import record
from flambeau.core.calling import overrides
from flambeau.core.copy_on_write import own
from flambeau.core.devices import cpu
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import deriving, grad_enabled, grad_mode, is_inference_mode_enabled
from flambeau.core.tensor import (
    LAZY,
    LEAF,
    STALE,
    Tensor,
    View,
    gradient_edge,
    plain_types,
    unrecorded,
)
from flambeau.kernels.moving.views import array_strides, has_internal_overlap

# ---- may this tensor be written to? -------------------------------------------------------------


LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."


def check_inplace(tensor: Tensor, needs_grad: bool, apart: bool = True) -> None:
    """Raise if autograd or aliasing forbids writing to `tensor` now.

    `needs_grad`: will the written value require grad? `apart`: must its elements be?
    """
    edge = tensor._edge if grad_enabled() else None
    if edge is LEAF:
        raise RuntimeError(LEAF_WRITTEN)
    if edge is LAZY:
        required = tensor.requires_grad or tensor._base.requires_grad
        if tensor._view.made and (needs_grad or required):
            raise forbidden(tensor, "is being")
        if required and tensor._base.is_leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an "
                               "in-place operation.")
    if apart:
        check_places(tensor)
    if not tensor._array.flags.writeable:
        own(tensor._array)


def count_write(tensor: Tensor) -> None:
    """Count one write to the tensor's memory. Where that cannot be counted, PyTorch says so after
    the write: whatever the op refuses comes first."""
    if tensor._inference and not (is_inference_mode_enabled() or deriving.get()):
        raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not "
                           "allowed.You can make a clone to get a normal tensor before doing "
                           "inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
                           "details.")
    bump(tensor)


def check_places(tensor: Tensor) -> None:
    """Raise if several elements are one in memory, as those of expanded tensors are."""
    if tensor._array.size > 1 and has_internal_overlap(tensor._array) \
            and (tensor._device is not cpu or type(tensor) not in overrides.internal_types):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor "
                           "refers to a single memory location. Please clone() the tensor before "
                           "performing the operation.")


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
        inner, *geometry = self.saved
        part, put_back = late_bound.cut_out(grad, *geometry)
        old, *rest = inner.apply(part)
        return (None if self.edges[0] is None else put_back(old), *rest)


CopySlices.__module__ = "torch.autograd"
CopySlices.name = lambda self: "torch::autograd::CopySlices"


def rebase(tensor: Tensor, node: Any) -> None:
    """Make `node` (or an Output, or None) the history of `tensor`, which was just written to."""
    if tensor._edge is not LAZY:
        old = tensor._edge
        if tensor._retains_grad:
            move_retained_grad(tensor, old, node)
        tensor._edge = node
        return
    base = tensor._base
    base_edge = gradient_edge_before_write(base)
    if node is None and base_edge is None:
        return
    old = tensor._view.node
    slices = CopySlices()
    inner = node.node if node is not None else _nothing
    if inner.differentiated is not None:
        slices.differentiated = inner.differentiated
    slices.edges = (base_edge, *(inner.edges[1:] if node is not None else ()))
    slices.order = next_order()
    slices.shape, slices.dtype = base._array.shape, base._array.dtype
    offset = tensor.storage_offset() - base.storage_offset()
    slices.saved = (inner, array_strides(base._array), tensor._view.replay, tensor._array.shape,
                    array_strides(tensor._array), offset)
    if base._retains_grad:
        move_retained_grad(base, base_edge, slices)
    base._edge = slices
    view = tensor._view
    view.version = STALE
    if tensor._retains_grad:
        move_retained_grad(tensor, old, gradient_edge(tensor))


class _Nothing(Node):
    """The op that wrote was not differentiable: nothing flows to what the part was before."""

    __slots__ = ()

    def apply(self, grad: Any) -> Any:
        return (None,)


_nothing = _Nothing()
_nothing.edges, _nothing.saved, _nothing.order = (None,), (), 0


def regenerate(tensor: Tensor, view: View) -> Any:
    """The edge of a view whose memory was written to since its node was made."""
    base, now, old = tensor._base, tensor._counter[0], view.node
    base_edge = None if tensor._array.dtype not in FLOATING else gradient_edge(base)
    if base_edge is None and old is not LEAF:
        view.node, view.version = None, now
        return None
    if base_edge is None or view.version == unrecorded(now):
        return tensor
    if view.made:
        raise forbidden(tensor, "its base or another view of its base has been")
    view.version = now
    array, offset = tensor._array, tensor.storage_offset()
    if view.replay is not None:
        view.node = within(grad_mode, True, view.replay, base)._view.node
    elif type(base) in plain_types:               # the node alone: nothing is computed
        record(late_bound.as_strided.op, (base, array.shape, array_strides(array), offset),
               (base_edge,), tensor)
    else:
        view.node = within(grad_mode, True, late_bound.as_strided, base, array.shape,
                           array_strides(array), offset)._view.node
    if tensor._retains_grad:
        move_retained_grad(tensor, old, view.node)
    return view.node


def gradient_edge_before_write(base: Tensor) -> Any:
    edge = base._edge
    return base if edge is LEAF else edge


def rebase_to_zero_grad(tensor: Tensor) -> None:
    edge = tensor._edge
    if edge is LAZY:
        if gradient_edge_before_write(tensor._base) is not None:
            rebase(tensor, None)
    elif edge is not None:
        node = FillBackward2()
        node.edges, node.saved, node.order = (edge,), (), next_order()
        node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
        tensor._edge = node


class FillBackward2(Node):
    """A tensor whose values were overwritten with constants: nothing flows on."""

    __slots__ = ()
    frees = False

    def apply(self, grad: Tensor) -> Any:
        return (late_bound.zeros_like(grad),)


class Overwritten(FillBackward2):
    """… with what depends on several tensors, but not smoothly: `x.eq_(y)`."""

    __slots__ = ()

    def apply(self, grad: Tensor) -> Any:
        nothing = late_bound.zeros_like(grad)
        return [None if shape is None else late_bound.sum_to_size(nothing, shape)
                for shape in self.saved]


# ---- refusals ------------------------------------------------------------------------------------

_WHY = "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify " \
    "your code by moving both the view and the inplace either both inside the {} block (if you " \
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
_FORBIDDEN = {
    "multi_output": "This view is the output of a function that returns multiple views. Such "
                    "functions do not allow the output views to be modified inplace. You should "
                    "replace the inplace operation by an out-of-place one.",
    "no_grad": _WHY.format("no_grad"),
    "inference": _WHY.format("inference_mode"),
    "custom": "This view was created inside a custom Function (or because an input was returned "
              "as-is) and the autograd logic to handle view+inplace would override the custom "
              "backward associated with the custom Function, leading to incorrect gradients. This "
              "behavior is forbidden. You can fix this by cloning the output of the custom "
              "Function.",
}
_MODES = {"no_grad": ("no_grad mode", "with grad mode enabled"),
          "inference": ("inference mode", "in normal mode")}


def forbidden(tensor: Tensor, modified: str) -> RuntimeError:
    """Why this view must not be written to ("is being"), or its base must not have been."""
    made, node = tensor._view.made, tensor._view.node
    recorded = node is not None and node is not LEAF
    first = "A view was"
    if recorded:
        first = f"Output {node.index} of {op_name(node.node)} is a view"
    if recorded and made not in _MODES:
        what = f"{first} and {modified} modified inplace."
    else:
        before, now = _MODES.get(made, _MODES["no_grad"])
        first += " of a view which was" if recorded else ""
        what = f"{first} created in {before} and {modified} modified inplace {now}."
    return RuntimeError(f"{what} {_FORBIDDEN[made]}")
