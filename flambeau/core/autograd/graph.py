"""The graph: nodes, edges, and what a node saves.

A recorded op makes one `Node`. Its `edges` say where the gradients of its inputs go: to the node
that computed the input, to the input itself if that is a leaf, or nowhere (None). A node with
several outputs is pointed at through an `Output`, which adds the number.

    >>> import flambeau
    >>> a = flambeau.ones(2, requires_grad=True)
    >>> b = (a * 2).sum()
    >>> b.grad_fn.name(), b.grad_fn.next_functions[0][0].name()
    ('SumBackward0', 'MulBackward0')

Users see the graph that PyTorch would have, where one node may do the work of several: theirs is a
view of ours, which looking does not change (`parts_of`, below).
"""
from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import floor
from typing import Any

import numpy as np

from flambeau._support.c_functions import ReadOnly, counted
from flambeau._support.scopes import within
from flambeau._support.source_locations import Place, counter_of
from flambeau.core import late_bound
from flambeau.core.autograd.backward_errors import freed_error, stale_error
from flambeau.core.autograd.hooks import NodeHooks, hooks_of, register
from flambeau.core.devices import cpu
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.modes import deriving, interceptors
from flambeau.core.tensor import LAZY, Tensor, alias, new_tensor, plain_types, tensor_types

# A node is newer than all that it feeds. Newer nodes get smaller numbers, so that a min-heap of
# numbers gives the newest node first: an order in which no node runs before it is complete.
next_order: Any = itertools.count(-1, -1).__next__

current_pass: ContextVar[Any] = ContextVar("backward_pass", default=None)   # engine.Pass


class Node(Place):
    """One recorded op: where gradients go, what its derivative needs, and where it was made."""

    __slots__ = ("__dict__", "__weakref__", "dtype", "edges", "freed_by", "order", "saved",
                 "shape")
    dtype: Any
    edges: Any
    freed_by: Any                        # the place of the pass that freed `saved`; may be unset
    order: int
    saved: Any
    shape: Any
    results: Any                         # of a custom Function

    outputs = 1                          # how many results the op gave
    index = 0                            # so that a node can stand for its first output
    op: Any = None                       # the op's declaration
    saved_names: tuple[str, ...] = ()
    saved_kinds: tuple[str, ...] = ()    # "tensor", "result" or "value" for each
    hooks: NodeHooks | None = None
    frees = True                         # are there saved tensors to free after a pass?
    simple = True                        # one output, no hooks: nothing to look after
    unfold: Any = None                   # where it does the work of several nodes: makes those that
                                         # users see, without itself, and gives the last
    known_parts: Any = None              # … weak references to them, the last first
    part_of: Any = None                  # of such a one: what does its work, and which it is
    whole: Any = None                    # of the last node of a composite that is seen as one node:
                                         # where that node's gradients go
    packed = False                       # do hooks of the user hold what it saved?
    differentiated: Any = None           # the inputs that the op has derivatives by, if not all
    accepts_undefined = False            # is `apply` called when no gradient arrived at all?
    result_state: Any = None             # class and attributes of results, where not a plain Tensor
    dims_given: Any = None               # of a call that modes saw: dimensions as users count them
    of_number = False                    # … was it shown as the overload that takes a number?

    @property
    def node(self) -> Node:
        return self

    def apply(self, grad: Any) -> Any:
        """Gradients for each edge, given that of the output (a list of them for several)."""
        raise NotImplementedError(type(self).__name__)

    def keep(self) -> None:
        """Called when the node gets hooks: one that is made on demand is now to be kept, one that
        stands for a whole composite is to run as a whole, one that was only seen is to run."""
        if self.part_of is not None:
            take_over(self)
        if self.whole is not None:
            late_bound.close_whole(self)

    @counted
    def name(self) -> str:
        """The name under which PyTorch knows this node."""
        return type(self).__name__

    @ReadOnly
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For each input: the node that gets its gradient, and for which of that node's outputs."""
        edges = self.of_inputs(self.edges) if self.whole is None else self.whole
        return tuple([(None, 0) if e is None
                      else (accumulator_of(e), 0) if type(e) in tensor_types
                      else e.node.seen(e.index) for e in edges])

    def seen(self, index: int) -> tuple[Any, int]:
        """The node and the number of its output that users see in place of an output of this."""
        last = self if self.unfold is None else parts_of(self)
        if last is not self:
            return last.seen(0)
        return self, index and list(differentiable_outputs(self)).index(index)

    def of_inputs(self, values: Any) -> Any:
        """Of one value for each tensor argument those whose tensors have a derivative."""
        chosen = self.differentiated
        return values if chosen is None else tuple([values[i] for i in chosen])

    def of_outputs(self, grads: Any) -> tuple[Any, ...]:
        """Of one gradient for each output, or the only one, those that users see."""
        if self.outputs == 1:
            return (grads,)
        return tuple([None if grads is None else grads[i] for i in differentiable_outputs(self)])

    def to_outputs(self, seen: Any) -> Any:
        """The gradients for `apply`, of those that users see."""
        if self.outputs == 1:
            return seen[0]
        given = dict(zip(differentiable_outputs(self), seen))
        return [given.get(i) for i in range(self.outputs)]

    @ReadOnly
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user."""
        if self.part_of is None:
            return self.__dict__.setdefault("_metadata", {})
        whole, place = self.part_of             # which lasts; what it notes is the last part's
        return whole.__dict__.setdefault(f"_metadata_{place}", {}) if place else whole.metadata

    @counted
    def _sequence_nr(self) -> int:
        return -floor(self.order)

    @counted
    def _set_sequence_nr(self, number: int) -> None:
        """When a backward pass runs this node: of those that can run, the one with the greatest
        number. No other node of the graph may have it."""
        self.keep()
        self.order = -number

    @ReadOnly
    def _input_metadata(self) -> tuple[Any, ...]:
        edges = output_edges(self)
        return tuple([InputMetadata(self, edges[i]) for i in differentiable_outputs(self)])

    @counted
    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run; what it returns, if
        anything, replaces `grad_inputs`."""
        return register(hooks_of(self).post, fn)

    @counted
    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Call `fn(grad_outputs)` before this node runs; what it returns, if anything, replaces
        `grad_outputs`."""
        return register(hooks_of(self).pre, fn)

    @counted
    def _register_hook_dict(self, tensor: Any) -> None:
        if type(tensor) not in tensor_types:
            raise TypeError("_register_hook_dict expected a variable")
        hooks_of(self)

    def __call__(self, *grads: Any) -> Any:
        """Run the node's derivative on given gradients."""
        count = len(differentiable_outputs(self))
        if len(grads) != count:
            raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
        for i, grad in enumerate(grads):
            if grad is not None and type(grad) not in tensor_types:
                raise TypeError(f"argument {i} is not a Variable")
        if self.saved is None or (self.part_of is not None and self.part_of[0].saved is None):
            raise freed_error(self)
        self.keep()
        produced = tuple(self.of_inputs(self.apply(self.to_outputs(grads))))
        return produced[0] if len(produced) == 1 else produced

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            return late_bound.saved_attribute(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(f"_saved_{n}" for n in late_bound.shown_names(self)),
                *(f"_raw_saved_{n}" for n, k in zip(self.saved_names, self.saved_kinds)
                  if k != "value")]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Output:
    """The `index`-th output of a node that has several."""

    __slots__ = ("__weakref__", "dtype", "index", "node", "shape")

    def __init__(self, node: Node, index: int, shape: tuple[int, ...], dtype: np.dtype):
        self.node, self.index, self.shape, self.dtype = node, index, shape, dtype

    @property
    def order(self) -> int:
        return self.node.order


def differentiable_outputs(node: Node) -> Sequence[int]:
    """Which outputs of a node users see and count: those that the op has derivatives of, so no
    indices; of a custom function all."""
    if node.outputs == 1 or node.op is None:
        return range(node.outputs)
    marks = node.op.differentiable
    return [i for i, (_, dtype) in enumerate(node.results)
            if dtype.kind not in "biu" and (marks[i] if isinstance(marks, tuple) else True)]


def output_edges(node: Node) -> list[Any]:
    """The edges that point at each output of `node`, in order; None at what is no tensor. A node of
    several outputs holds only their shapes and types: holding the edges would be a cycle."""
    if node.outputs == 1:
        return [node]
    return [found and Output(node, i, *found) for i, found in enumerate(node.results)]


def node_class(name: str, **members: Any) -> type[Node]:
    """A class of node named as PyTorch names it (`MulBackward0`)."""
    kinds = members.get("saved_kinds", ())
    members.setdefault("frees", any(kind != "value" for kind in kinds))
    return type(name, (Node,), {"__slots__": (), "__module__": "builtins", **members})


# ---- what a node saves --------------------------------------------------------------------------

saved_tensor_hooks: list[Any] = []      # pairs (pack, unpack) of those that are active


class Packed:
    """A saved tensor that a `saved_tensors_hooks` pack hook has replaced by something else.
    `edge(node)` gives the history of the original, or is None where that has none."""

    __slots__ = ("edge", "unpack", "value")

    def __init__(self, value: Any, unpack: Any, edge: Any):
        self.value, self.unpack, self.edge = value, unpack, edge


# Entries of `Node.saved`: plain tuples, since C makes them too, and one is made for each value.
SavedInput = tuple[Tensor, int]                     # the tensor, and its version then
SavedResult = tuple[np.ndarray, Any, int, int]      # array, write counter, version, which output


def save_input(tensor: Any) -> SavedInput | Any:
    """A saved input: the tensor itself and the version it has now."""
    if type(tensor) not in tensor_types:
        return tensor                   # a number, or None
    if tensor._inference and not deriving.get():
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use "
                           "Tensors created in inference mode in computation tracked by autograd. "
                           "To work around this, you can make a clone to get a normal tensor and "
                           "use it in autograd, or use `torch.no_grad()` instead of "
                           "`torch.inference_mode()`.")
    counter = tensor._counter
    return tensor, 0 if counter is None else counter[0]


def save_result(tensor: Tensor, index: int = 0) -> SavedResult:
    """A saved result: not the tensor, which holds the node (a cycle), but what makes it again."""
    counter = counter_of(tensor)
    return tensor._array, counter, counter[0], index


def unpack(node: Any, i: int) -> Any:
    """The `i`-th saved value of `node`, if nobody wrote to it since."""
    saved = node.saved
    if saved is None:
        raise freed_error(node)
    entry = saved[i]
    kind = node.saved_kinds[i]
    if kind == "value" or entry is None:
        return entry
    if type(entry) is Packed:
        return unpack_packed(node, entry)
    if kind == "tensor":
        return unpack_input(node, entry) if type(entry) is tuple else entry     # a number
    if kind == "tensors":
        return [unpack_input(node, one) for one in entry]
    return unpack_result(node, entry)


def check_version(node: Node, tensor: Tensor, expected: int) -> Tensor:
    """The tensor, if nobody has written to its memory since that version was saved."""
    counter = tensor._counter
    found = 0 if counter is None else counter[0]
    if found != expected:
        raise stale_error(node, tensor, found, expected)
    return tensor


def unpack_input(node: Node, entry: Any) -> Tensor:
    """The tensor of a `SavedInput`, or of what hooks have made of one."""
    return unpack_packed(node, entry) if type(entry) is Packed else check_version(node, *entry)


def unpack_result(node: Node, entry: SavedResult) -> Tensor:
    array, counter, expected, index = entry
    state = node.result_state
    if state is None:
        tensor = new_tensor()
    else:
        cls, attributes = state[index]
        tensor = object.__new__(cls)
        tensor.__dict__.update(attributes)
    tensor._array, tensor._base, tensor._counter = array, None, counter
    if node.outputs == 1:
        tensor._edge = node
    else:                                   # integer results have no gradient
        tensor._edge = output_edges(node)[index] if array.dtype.kind not in "bui" else None
    return check_version(node, tensor, expected)


def unpack_packed(node: Node, packed: Packed) -> Tensor:
    value = packed.unpack(packed.value)
    if type(value) not in tensor_types:
        raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result "
                        f"of type {type(value).__name__}")
    if packed.edge is None:
        return value
    result = alias(value._array, type(value))
    if type(value) not in plain_types:
        result.__dict__.update(value.__dict__)
    result._counter = value._counter
    result._edge = packed.edge(node)
    return result


# ---- what users see in place of a node -----------------------------------------------------------

def parts_of(node: Node) -> Node:
    """The last of the nodes that users see in place of one that does the work of several.

    They are a view: made when somebody looks, the same for as long as anybody holds them, and
    unknown to the engine. They lead to where `node` leads and know it (`part_of`); it knows them
    weakly. Only when one is used, as it gets a hook or is an edge that gradients are asked for,
    they take over (below). A node that has run shows itself, as does one that a pass may just run.
    """
    known = [reference() for reference in node.known_parts or ()]
    if known and known[0] is not None:
        return known[0]
    if node.saved is None or node.packed or interceptors or current_pass.get() is not None:
        return node
    since = next_order()
    last = node.unfold()
    if last is node or not isinstance(last, (Node, Output)):
        return node
    parts = _nodes_since(last.node, since)
    held = {fresh.order: old for fresh, old in zip(parts, known) if old is not None}
    for part in parts:                          # some may still be held, though the last is not
        part.edges = tuple([e if e is None or type(e) in tensor_types or e.order not in held
                            else output_edges(held[e.order])[e.index] for e in part.edges])
    parts = [held.get(part.order, part) for part in parts]
    for place, part in enumerate(parts):        # after the node, before those that it leads to
        part.order = node.order + (place + 1) / (len(parts) + 1)    # type: ignore[assignment]
        part.part_of = node, place
    node.known_parts = [weakref.ref(part) for part in parts]
    return parts[0]


def _nodes_since(last: Node, since: int) -> list[Node]:
    """The nodes of a graph that were made since then, the last first."""
    found: dict[int, Node] = {}
    stack = [last]
    while stack:
        node = stack.pop()
        if node.order < since and node.order not in found:
            found[node.order] = node
            stack += [e.node for e in node.edges if e is not None and type(e) not in tensor_types]
    return [found[order] for order in sorted(found)]


def take_over(part: Node) -> None:
    """Let the nodes that users see do the work of the node in whose place they are seen."""
    whole = part.part_of[0]
    if whole.part_of is not None:
        take_over(whole)
    last = within(current_pass, None, parts_of, whole)
    if whole.saved is None or last is whole:
        return                                  # it has run: nothing is left to do
    parts = [reference() for reference in whole.known_parts]
    for one in parts:
        one.__dict__["_metadata"], one.part_of = one.metadata, None
    whole.__class__ = Unfolded
    whole.edges, whole.saved, whole.known_parts = (output_edges(last)[0],), (), None
    running = current_pass.get()
    if running is not None and running.needed is not None:
        running.needed.update([one.order for one in parts])


class Unfolded(Node):
    """A node whose parts have taken over: it hands its gradient to the last of them."""

    __slots__ = ()
    frees = False

    def name(self) -> str:
        return self.edges[0].node.name()

    def seen(self, index: int) -> tuple[Any, int]:
        return self.edges[0].node.seen(0)

    def apply(self, grad: Any) -> Any:
        return (grad if self.outputs == 1 else grad[0],)    # of the others users see none


# ---- leaves as nodes ----------------------------------------------------------------------------

class AccumulateGrad(Node):
    """Stands for a leaf where users look at the graph as nodes. The engine itself adds to leaves
    directly; this is made when somebody asks, and kept while it carries hooks."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor):
        self.variable = variable
        self.edges, self.saved = (), ()
        self.shape, self.dtype = variable._array.shape, variable._array.dtype
        self.order = -(2 ** 63)

    def keep(self) -> None:
        self.variable._accumulator = self

    def apply(self, grad: Any) -> Any:
        late_bound.accumulate(self.variable, grad)
        return ()


AccumulateGrad.__module__ = "torch.autograd"


def takes_no_gradient(leaf: Tensor) -> bool:
    """Does a gradient end at this edge without being kept? Such are a leaf that was told not to
    require grad after it was used, and a view made without recording: that counts as requiring
    grad where its base does, but has no node, and is no leaf of its own either."""
    edge = leaf._edge
    return edge is None or (edge is LAZY and leaf._view.node is None)


def accumulator_of(leaf: Tensor) -> AccumulateGrad | None:
    """The node that stands for `leaf`: one object for as long as anybody holds it; None for a view
    that is no leaf of its own."""
    if leaf._edge is LAZY and takes_no_gradient(leaf):
        return None
    known = leaf._accumulator
    if known is not None and not isinstance(known, AccumulateGrad):
        known = known()
    if known is None:
        known = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(known)
    return known


class InputMetadata:
    """Shape and type of the gradient that an output of a node expects."""

    def __init__(self, node: Node, output: Any):
        nested = node.__dict__.get("_nested_shape")
        shape, dtype = ((), np.dtype("f4")) if output is None else (output.shape, output.dtype)
        self.shape = list(shape) if nested is None else nested
        self.dtype, self.device = from_numpy_dtype(dtype), cpu
        self.is_nested_tensor, self.is_cpp_nested_tensor = nested is not None, False
