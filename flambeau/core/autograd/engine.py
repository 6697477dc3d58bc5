"""The backward pass.

A node is newer than all that it feeds, so the newest node that waits has received every gradient it
will ever get: no count of dependencies is needed, only a heap of the nodes' numbers. Going from
newest to oldest, each node turns the gradient of its output into those of its inputs, which are
added to what waits for the older nodes. A gradient that arrives at a leaf is added to its `grad`.
All of this is one loop, `Pass.propagate`, which begins with the gradients that the caller gives.

    >>> import flambeau
    >>> x = flambeau.tensor([3.0], requires_grad=True)
    >>> y = x * x
    >>> run([(gradient_edge(y), flambeau.ones(1))], retain=False, create_graph=False)
    >>> x.grad
    tensor([6.])

Per backward pass the state is local to `Pass`, so passes may nest (a hook or a custom function may
start another) and run in several threads at once.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._support.scopes import enclosed, locked, within
from flambeau._support.source_locations import Place, bump
from flambeau.core import late_bound
from flambeau.core.autograd.backward_errors import freed_error
from flambeau.core.autograd.fitting import fit, validate_grad_for
from flambeau.core.autograd.graph import (
    Node,
    Output,
    accumulator_of,
    current_pass,
    next_order,
    takes_no_gradient,
)
from flambeau.core.autograd.hooks import (
    check_replacement,
    run_posthooks,
    run_prehooks,
    run_tensor_hooks,
)
from flambeau.core.calling.overrides import own_rules, sparse_types
from flambeau.core.modes import (
    anomaly,
    grad_enabled,
    grad_layouts,
    grad_mode,
    interceptors,
    intercepts_ops,
)
from flambeau.core.tensor import LEAF, Tensor, gradient_edge, plain_types, tensor_types, wrap

accumulate_lock = threading.Lock()


def run(roots: list[tuple[Any, Any]], retain: bool, create_graph: bool,
        captures: list[Any] | None = None, accumulate: bool = True,
        closed: bool = False) -> list[Any] | None:
    """Propagate gradients from `roots`, pairs of an edge and its gradient.

    With `captures`, a list of edges, only what lies before them runs. Leaves collect their
    gradients in `grad`; or, without `accumulate`, those of the captures are returned (None where
    none arrived). `closed`: nothing behind a captured edge runs, not even for another capture.
    """
    this = Pass(roots, retain, create_graph, accumulate)
    this.closed = closed
    outer = current_pass.get()
    if outer is not None:
        this.depth = outer.depth + 1
        if this.depth % 25 == 0:
            from flambeau.core.autograd.fresh_stack import needs_fresh_stack, on_fresh_stack
            if needs_fresh_stack(this.depth):
                return on_fresh_stack(run, this.depth, roots, retain, create_graph, captures,
                                      accumulate, closed)
    return within(current_pass, this, within, grad_mode, create_graph, enclosed, this.run, captures)


def current_autograd_node() -> Node | None:
    """The node whose derivative is being computed on this thread, if any."""
    this = current_pass.get()
    node = this and this.running
    return accumulator_of(node) if type(node) in tensor_types else node


class Pass:
    """One backward pass: what waits, and what is to be kept."""

    captures: Any = None                    # edges whose gradients are asked for
    needed: set[int] | None = None          # orders of nodes on the way to a capture
    targets: dict[int, list[int]] = {}      # order of a captured node: output numbers
    leaf_targets: Any = frozenset()         # ids of captured leaves
    counts: dict[int, int] | None = None    # edges into each leaf, once somebody watches one
    depth = 0                               # of passes inside passes
    closed = False                          # do captured nodes end the pass?

    def __init__(self, roots: Any, retain: bool, create_graph: bool, accumulate: bool):
        self.place = Place()                        # where the user has called for it
        self.roots, self.retain, self.create_graph = roots, retain, create_graph
        self.accumulate = accumulate
        self.running: Any = None                    # the node that runs, or leaf that is added to
        self.ready: list[int] = []                  # a heap of the orders of waiting nodes
        self.waiting: dict[int, Node] = {}
        self.grads: dict[int, Any] = {}             # by order: a gradient, or a list of them
        self.leaf_sums: dict[int, list[Any]] = {}   # watched leaves by id: leaf, sum, edges left
        self.captured: dict[Any, Any] = {}          # (order, index) or id of a leaf: gradient
        self.callbacks: list[Callable[[], None]] = []

    # ---- beginning and end --------------------------------------------------------------------

    def run(self, captures: list[Any] | None) -> list[Any] | None:
        """The whole pass."""
        if captures is not None:
            self.find_needed(captures)
        self.propagate()
        captured = self.finish()
        self.running = None
        while self.callbacks:
            self.callbacks.pop(0)()
        return captured

    def find_needed(self, captures: list[Any]) -> None:
        """Find the nodes from which a captured edge can be reached: only these will run."""
        self.captures, self.targets, self.leaf_targets = captures, {}, set()
        for edge in captures:
            if type(edge) in tensor_types:
                self.leaf_targets.add(id(edge))
            else:
                self.targets.setdefault(edge.order, []).append(edge.index)
        nodes = self.reachable()
        needed: set[int] = set()
        for order in sorted(nodes, reverse=True):           # oldest first
            if order in self.targets:
                needed.add(order)
                continue
            for edge in nodes[order].edges:
                if edge is not None and (id(edge) in self.leaf_targets
                                         if type(edge) in tensor_types
                                         else edge.order in needed):
                    needed.add(order)
                    break
        self.needed = needed

    def reachable(self) -> dict[int, Node]:
        """All nodes that the roots depend on; with captures of nodes only, none older than they."""
        oldest = None                       # orders fall: the greatest is the oldest
        if self.targets and not self.leaf_targets:
            oldest = max(self.targets)
        nodes: dict[int, Node] = {}
        stack = [e.node for e, _ in self.roots if type(e) not in tensor_types]
        while stack:
            node = stack.pop()
            if node.order in nodes:
                continue
            nodes[node.order] = node
            for edge in node.edges:
                if edge is not None and type(edge) not in tensor_types \
                        and edge.order not in nodes and (oldest is None or edge.order <= oldest):
                    stack.append(edge.node)
        return nodes

    def finish(self) -> list[Any] | None:
        for leaf, total, _left in list(self.leaf_sums.values()):
            self._leaf_complete(leaf, total)                # edges that got no gradient at all
        if self.captures is None:
            return None
        found = []
        for edge in self.captures:
            key = id(edge) if type(edge) in tensor_types else (edge.order, edge.index)
            found.append(self.captured.get(key))
        return found

    # ---- the loop -------------------------------------------------------------------------------

    def propagate(self) -> None:
        """Deliver the gradients of the roots, then run the newest waiting node and deliver what it
        gives, until none is left."""
        for i, (edge, grad) in enumerate(self.roots):
            if type(edge) in tensor_types:
                self.deliver_leaf(edge, grad, None, i)
            else:
                self._wait(edge.node, edge.index, grad)
        ready, waiting, grads, retain = self.ready, self.waiting, self.grads, self.retain
        watched = self.needed is not None or anomaly.enabled or self.create_graph
        place = self.place
        add = late_bound.add
        while ready:
            order = heappop(ready)
            node, grad = waiting.pop(order), grads.pop(order)
            while node is not None:             # the newest that it feeds is often the next
                # ---- run it
                self.running = node
                if watched or grad is None or not node.simple:
                    produced = self._run_general(node, grad)
                    if produced is None:
                        break
                else:
                    if node.saved is None:
                        raise freed_error(node)
                    produced = node.apply(grad)
                if not retain and node.frees:
                    node.saved, node.freed_by = None, place
                edges = node.edges              # only now: a hook may have let its parts take over
                if type(produced) is not list:
                    produced = list(produced)
                # ---- deliver what it gives; `newest` and `grad` stay out of the heap
                grad = newest = None
                i = -1
                for edge in edges:
                    i += 1
                    if edge is None:
                        continue
                    g = produced[i]
                    if type(edge) in tensor_types:
                        produced[i] = None      # nobody but us holds it: the leaf may keep it
                        self.deliver_leaf(edge, g, node, i)
                        continue
                    if g is not None:
                        array = g._array
                        if array.shape != edge.shape or array.dtype is not edge.dtype:
                            g = fit(g, edge.shape, edge.dtype, node, i)
                    if type(edge) is Output:
                        if edge.node.outputs > 1:
                            self._wait(edge.node, edge.index, g)
                            continue
                        edge = edge.node
                    order = edge.order
                    if edge is newest:
                        if g is not None:
                            grad = g if grad is None else add(grad, g)
                    elif order in waiting:
                        if g is not None:
                            old = grads[order]
                            grads[order] = g if old is None else add(old, g)
                    elif newest is None:
                        newest, grad = edge, g
                    else:
                        waiting[order], grads[order] = edge, g
                        heappush(ready, order)
                produced = g = old = edge = array = None    # what nobody needs is not held
                if ready and newest is not None and newest.order > ready[0]:
                    waiting[newest.order], grads[newest.order] = newest, grad
                    heappush(ready, newest.order)
                    newest = None
                node = newest

    def _wait(self, node: Node, index: int, grad: Any) -> None:
        """Keep the gradient of an output until the node runs: as the loop does for nodes of one."""
        order, several = node.order, node.outputs > 1
        if order not in self.waiting:
            self.waiting[order] = node
            self.grads[order] = [None] * node.outputs if several else None
            heappush(self.ready, order)
        if grad is not None:
            found: Any = self.grads[order] if several else self.grads
            place = index if several else order
            old = found[place]
            found[place] = grad if old is None else late_bound.add(old, grad)

    def _run_general(self, node: Node, grad: Any) -> Any:
        """Run a node that has hooks, several outputs or no gradient, or whose pass has captures;
        gives its gradients, or None if the pass does not go on there."""
        hooks = node.hooks
        if self.needed is not None and node.order not in self.needed:
            return None
        if hooks is not None:
            grad = run_tensor_hooks(node, hooks, grad)
        if self.needed is not None:
            if node.order in self.targets:
                self._capture(node, grad)
            if not self._leads_to_capture(node):
                return None
        if hooks is not None and hooks.pre:
            grad = run_prehooks(node, hooks, grad)
        seen = grad if hooks is not None and hooks.post else None
        since = next_order() if self.create_graph else 0
        produced = anomaly.run(node, grad) if anomaly.enabled else apply_node(node, grad)
        if since:
            late_bound.see_formula(node, grad, produced, since)
        if node.hooks is not None and node.hooks.post:      # perhaps only since it ran
            produced = [validate_grad_for(edge, g, node, i)
                        for i, (edge, g) in enumerate(zip(node.edges, produced))]
            produced = run_posthooks(node, node.hooks, produced, seen)
        return produced

    def _leads_to_capture(self, node: Node) -> bool:
        """Does a captured edge lie beyond this node?"""
        if node.order not in self.targets or self.accumulate:
            return True
        if self.closed:
            return False
        return any(e is not None and (id(e) in self.leaf_targets if type(e) in tensor_types
                                      else e.order in self.needed) for e in node.edges)

    def _capture(self, node: Node, grad: Any) -> None:
        for index in self.targets[node.order]:
            self.captured[node.order, index] = grad if node.outputs == 1 else grad[index]

    # ---- leaves ----------------------------------------------------------------------------------

    def deliver_leaf(self, leaf: Tensor, grad: Any, node: Any, position: int) -> None:
        """A gradient has arrived at a leaf: add it to `grad`, at once where nobody watches."""
        if grad is not None:
            array, own = grad._array, leaf._array
            if array.shape != own.shape or array.dtype is not own.dtype or leaf._hooks is not None:
                grad = validate_grad_for(leaf, grad, node, position)
        captured = id(leaf) in self.leaf_targets
        if self.captures is not None and not captured:
            return
        if (captured and not self.accumulate) or leaf._hooks is not None \
                or leaf._accumulator is not None:
            self._accumulate_hooked(leaf, grad)
        elif self.accumulate and interceptors and intercepts_ops():
            self._accumulate_shown(leaf, grad)
        elif grad is not None and self.accumulate:
            self.running = leaf
            accumulate_into(leaf, grad, self.create_graph, STOLEN_REFERENCES)

    def _accumulate_hooked(self, leaf: Tensor, grad: Any) -> None:
        """Hooks want the sum over all edges: keep it until the last one has delivered."""
        if takes_no_gradient(leaf):
            return
        entry = self._add_to_sum(leaf, grad)
        if entry[2] == 0:
            self._leaf_complete(leaf, entry[1])

    def _accumulate_shown(self, leaf: Tensor, grad: Any) -> None:
        """A level sees how gradients are added, which is before they arrive."""
        entry = self._add_to_sum(leaf, grad)
        if entry[2]:
            return
        summed, grad, entry[1] = entry[1] is not grad, entry[1], None
        if grad is not None:
            self.running = leaf     # a sum is known here alone, what a node gave to the loop too
            accumulate_into(leaf, grad, self.create_graph, STOLEN_REFERENCES + (not summed))

    def _add_to_sum(self, leaf: Tensor, grad: Any) -> list[Any]:
        """The leaf, the sum of what has arrived at it, and how many edges are yet to deliver."""
        entry = self.leaf_sums.get(id(leaf))
        if entry is None:
            entry = self.leaf_sums[id(leaf)] = [leaf, None, self.count_edges(leaf)]
        if grad is not None:
            entry[1] = grad if entry[1] is None else late_bound.add(entry[1], grad)
        entry[2] -= 1
        if entry[2] == 0:
            del self.leaf_sums[id(leaf)]
        return entry

    def count_edges(self, leaf: Tensor) -> int:
        if self.counts is None:
            counts: dict[int, int] = {}
            self.counts = counts
            for edge, _ in self.roots:
                if type(edge) in tensor_types:
                    counts[id(edge)] = counts.get(id(edge), 0) + 1
            for order, node in self.reachable().items():
                if self.needed is None or order in self.needed:
                    for edge in node.edges:
                        if type(edge) in tensor_types:
                            counts[id(edge)] = counts.get(id(edge), 0) + 1
        return self.counts.get(id(leaf), 1)

    def _leaf_complete(self, leaf: Tensor, grad: Any) -> None:
        hooks = leaf._hooks
        if hooks is not None and grad is not None:
            for hook in list(hooks.tensor.values()):
                answer = hook(grad)
                if answer is not None:
                    grad = check_replacement(grad, answer, hook)
        if id(leaf) in self.leaf_targets and not self.accumulate:
            self.captured[id(leaf)] = grad
            return
        accumulator = leaf._accumulator
        if accumulator is not None and not isinstance(accumulator, Node):
            accumulator = accumulator()
        node_hooks = accumulator.hooks if accumulator is not None else None
        if node_hooks is not None and node_hooks.pre:
            grad = run_prehooks(accumulator, node_hooks, grad)
        if grad is not None and self.accumulate:
            first = leaf._grad is None
            self.running = leaf
            accumulate_into(leaf, grad, self.create_graph, 0)
            grad = leaf._grad if first else grad
        if hooks is not None:
            for hook in list(hooks.accumulated.values()):
                returned = hook(leaf)
                if returned is not None and returned is not leaf:
                    check_replacement(leaf, returned, hook)
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if node_hooks is not None and node_hooks.post:
            for hook in list(node_hooks.post.values()):
                hook((), (grad,))


def apply_node(node: Node, grad: Any) -> Any:
    """The gradients that a node gives; none if none arrived, unless it wants to know."""
    if grad is None or (node.outputs > 1 and all(g is None for g in grad)):
        if not node.accepts_undefined:
            return (None,) * len(node.edges)
    elif node.saved is None:
        raise freed_error(node)
    return node.apply(grad)


def accumulate(leaf: Tensor, grad: Tensor) -> None:
    """Add `grad`, which others may hold, to `leaf.grad`."""
    accumulate_into(leaf, grad, grad_enabled(), 0)


def accumulate_into(leaf: Tensor, grad: Tensor, create_graph: bool, stolen: int) -> None:
    """Add `grad` to `leaf.grad`. One that nobody else holds becomes the leaf's gradient as it is.

    `stolen` is the number of references to such a gradient; 0 if it must be copied.
    """
    locked(accumulate_lock, _accumulate, leaf, grad, create_graph, stolen)


def _accumulate(leaf: Tensor, grad: Tensor, create_graph: bool, stolen: int) -> None:
    old = leaf._grad
    if old is None:
        if leaf._edge is not LEAF and takes_no_gradient(leaf):
            return
        array = grad._array
        if (stolen and not create_graph and getrefcount(grad) <= stolen and array.base is None
                and getrefcount(array) <= STOLEN_ARRAY
                and (array.strides == leaf._array.strides or not grad_layouts.get())
                and grad._edge is None and not interceptors):
            leaf._grad = grad
        elif create_graph or type(grad) in own_rules or interceptors:
            unshared = getrefcount(grad) <= stolen
            leaf._grad = late_bound.first_gradient(leaf, grad, unshared, create_graph)
        else:
            leaf._grad = late_bound.copy_like(grad, leaf)
        return
    if create_graph or type(old) not in plain_types or type(grad) not in plain_types:
        leaf._grad = late_bound.later_gradient(old, grad, create_graph) if sparse_types \
            else late_bound.add(old, grad)
        return
    if old._array.dtype != grad._array.dtype:
        grad = late_bound.cast(grad, old._array.dtype)
    if interceptors:
        old.add_(grad)
    else:
        kernels.add(old._array, grad._array, old._array)
        bump(old)


# ---- stealing -----------------------------------------------------------------------------------

getrefcount = sys.getrefcount
STOLEN_REFERENCES = STOLEN_ARRAY = 0


def calibrate() -> None:
    """How many references there are to a gradient that only the engine holds differs between
    interpreters: count them once, on a throw-away graph."""
    global STOLEN_REFERENCES, STOLEN_ARRAY, _accumulate
    seen: list[int] = []
    real = _accumulate

    def count(leaf: Tensor, grad: Tensor, create_graph: bool, stolen: int) -> None:
        array = grad._array
        seen.extend((getrefcount(grad), getrefcount(array)))

    _accumulate = count
    try:
        leaf = wrap(np.ones(1, np.float32), True)
        product = late_bound.mul(leaf, wrap(np.ones(1, np.float32)))
        run([(gradient_edge(product), wrap(np.ones(1, np.float32)))], False, False)
    finally:
        _accumulate = real
    STOLEN_REFERENCES, STOLEN_ARRAY = seen
