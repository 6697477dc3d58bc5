"""The graph: nodes, edges, what a node saves, and hooks.

A recorded op makes one `Node`. Its `edges` say where the gradients of its inputs go: to the node
that computed the input, to the input itself if that is a leaf, or nowhere (None). A node with
several outputs is pointed at through an `Output`, which adds the number.

    >>> import flambeau
    >>> a = flambeau.ones(2, requires_grad=True)
    >>> b = (a * 2).sum()
    >>> b.grad_fn.name(), b.grad_fn.next_functions[0][0].name()
    ('SumBackward0', 'MulBackward0')
"""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.source_locations import Place, counter_of
from flambeau.core.backward_errors import freed, stale
from flambeau.core.tensor import Tensor, alias, basis, new_tensor, plain, tensor_types

# A node is newer than all that it feeds. Newer nodes get smaller numbers, so that a min-heap of
# numbers gives the newest node first: an order in which no node runs before it is complete.
next_order: Any = itertools.count(-1, -1).__next__


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
    unfold: Any = lambda self: self      # the node as users see it: some stand for several
    whole: Any = None                    # of the last node of a composite that is seen as one node:
                                         # where that node's gradients go
    packed = False                       # do hooks of the user hold what it saved?
    differentiated: Any = None           # the inputs that the op has derivatives by, if not all
    accepts_undefined = False            # is `apply` called when no gradient arrived at all?
    result_state: Any = None             # class and attributes of results, where not a plain Tensor

    @property
    def node(self) -> Node:
        return self

    def apply(self, grad: Any) -> Any:
        """Gradients for each edge, given that of the output (a list of them for several)."""
        raise NotImplementedError(type(self).__name__)

    def keep(self) -> None:
        """Called when the node gets hooks: one that is made on demand is now to be kept, one that
        stands for a whole composite is to run as a whole."""
        if self.whole is not None:
            basis.close_whole(self)

    def name(self) -> str:
        """The name under which PyTorch knows this node."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """For each input: the node that gets its gradient, and for which of that node's outputs."""
        edges = self.of_inputs(self.edges) if self.whole is None else self.whole
        return tuple([(None, 0) if e is None
                      else (basis.accumulator_of(e), 0) if type(e) in tensor_types
                      else e.node.seen(e.index) for e in edges])

    def seen(self, index: int) -> tuple[Any, int]:
        """The node and the number of its output that users see in place of an output of this."""
        return self.unfold(), index

    def of_inputs(self, values: Any) -> Any:
        """Of one value for each tensor argument those whose tensors have a derivative."""
        chosen = self.differentiated
        return values if chosen is None else tuple([values[i] for i in chosen])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user."""
        return self.__dict__.setdefault("_metadata", {})

    def _sequence_nr(self) -> int:
        return -self.order

    @property
    def _input_metadata(self) -> list[Any]:
        return [basis.input_metadata(self, o) for o in output_edges(self)]

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run; what it returns, if
        anything, replaces `grad_inputs`."""
        return basis.register_hook(hooks_of(self).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(grad_outputs)` before this node runs; what it returns, if anything, replaces
        `grad_outputs`."""
        return basis.register_hook(hooks_of(self).pre, hook)

    def _register_hook_dict(self, hooks: Any) -> None:
        hooks_of(self)

    def __call__(self, *grads: Any) -> Any:
        """Run the node's derivative on given gradients."""
        count = differentiable_outputs(self)
        if len(grads) != count:
            raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
        if self.saved is None:
            raise freed(self)
        self.keep()
        if self.outputs == 1:
            produced = self.apply(grads[0])
        else:
            produced = self.apply([*grads, *[None] * (self.outputs - count)])
        produced = tuple(self.of_inputs(produced))
        return produced[0] if len(produced) == 1 else produced

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return basis.saved_attribute(self, name[7:])
        if name.startswith("_raw_saved_"):
            return basis.raw_attribute(self, name[11:])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(f"_saved_{n}" for n in basis.listed_saved(self)),
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


def differentiable_outputs(node: Node) -> int:
    """The number of a node's outputs, without those at the end that have no gradients: indices,
    and what the op declares so."""
    count = node.outputs
    if count > 1:
        marks = getattr(node.op, "differentiable", True)
        while count > 1 and (not marks[count - 1] if isinstance(marks, tuple) else
                             node.results[count - 1] and node.results[count - 1][1].kind in "biu"):
            count -= 1
    return count


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

packers: list[Any] = []                 # pairs (pack, unpack) of the active saved-tensor hooks


class Packed:
    """A saved tensor that a `saved_tensors_hooks` pack hook has replaced by something else.
    `edge(node)` gives the history of the original, or is None where that has none."""

    __slots__ = ("edge", "unpack", "value")

    def __init__(self, value: Any, unpack: Any, edge: Any):
        self.value, self.unpack, self.edge = value, unpack, edge


def save_input(tensor: Any) -> Any:
    """A saved input: the tensor itself and the version it has now."""
    if type(tensor) not in tensor_types:
        return tensor                   # a number, or None
    if tensor._inference:
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use "
                           "Tensors created in inference mode in computation tracked by autograd. "
                           "To work around this, you can make a clone to get a normal tensor and "
                           "use it in autograd, or use `torch.no_grad()` instead of "
                           "`torch.inference_mode()`.")
    counter = tensor._counter
    return tensor, 0 if counter is None else counter[0]


def save_result(tensor: Tensor, index: int = 0) -> Any:
    """A saved result: not the tensor, which holds the node (a cycle), but what makes it again."""
    counter = counter_of(tensor)
    return tensor._array, counter, counter[0], index


def unpack(node: Any, i: int) -> Any:
    """The `i`-th saved value of `node`, if nobody wrote to it since."""
    saved = node.saved
    if saved is None:
        raise freed(node)
    entry = saved[i]
    kind = node.saved_kinds[i]
    if kind == "value" or entry is None:
        return entry
    if type(entry) is Packed:
        return unpack_packed(node, entry)
    if kind == "tensor":
        if type(entry) is not tuple:
            return entry                # a Python number
        tensor, expected = entry
        counter = tensor._counter
        found = 0 if counter is None else counter[0]
        if found != expected:
            raise stale(node, tensor, found, expected)
        return tensor
    if kind == "tensors":
        return [unpack_input(node, one) for one in entry]
    return unpack_result(node, entry)


def unpack_input(node: Node, entry: Any) -> Any:
    if type(entry) is Packed:
        return unpack_packed(node, entry)
    tensor, expected = entry
    counter = tensor._counter
    if (found := 0 if counter is None else counter[0]) != expected:
        raise stale(node, tensor, found, expected)
    return tensor


def unpack_result(node: Node, entry: Any) -> Tensor:
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
    if counter[0] != expected:
        raise stale(node, tensor, counter[0], expected)
    return tensor


def unpack_packed(node: Node, packed: Packed) -> Tensor:
    value = packed.unpack(packed.value)
    if type(value) not in tensor_types:
        raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result "
                        f"of type {type(value).__name__}")
    if packed.edge is None:
        return value
    result = alias(value._array, type(value))
    if type(value) not in plain:
        result.__dict__.update(value.__dict__)
    result._counter = value._counter
    result._edge = packed.edge(node)
    return result


# ---- hooks --------------------------------------------------------------------------------------

class NodeHooks:
    """All hooks of one node, in the order in which they run: those of its output tensors, then
    `retain_grad`, then `pre`; the node; then `post`."""

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict[int, Any]] = {}
        self.retain: dict[int, Any] = {}
        self.pre: OrderedDict[int, Any] = OrderedDict()
        self.post: OrderedDict[int, Any] = OrderedDict()


def hooks_of(node: Node) -> NodeHooks:
    """The hooks of `node`, made on first demand."""
    if node.hooks is None:
        node.hooks = NodeHooks()
        node.simple = False
        node.keep()
    return node.hooks


class LeafHooks:
    """Hooks of a leaf tensor: on its gradient, and after that was accumulated; `grad_dtype` is the
    type its gradients are to have, None for its own, "any" for whatever arrives."""

    __slots__ = ("accumulated", "grad_dtype", "tensor")

    def __init__(self) -> None:
        self.tensor: OrderedDict[int, Any] = OrderedDict()
        self.accumulated: OrderedDict[int, Any] = OrderedDict()
        self.grad_dtype: Any = None
