"""The part of a distributed backward pass that runs in one process.

A pass has a number, the same in all processes that take part. Before gradients move, each of them
counts the edges over which gradients will come to its nodes (`reach`); a node runs once, when all
have come: from nodes here, or for a message that had left, from the process that received it.
"""
from __future__ import annotations

import threading
from collections import deque
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any

from flambeau import Tensor
from flambeau._support.scopes import within
from flambeau.core import late_bound
from flambeau.core.autograd.engine import Pass, fit
from flambeau.core.autograd.engine import current_pass as current_local_pass
from flambeau.core.autograd.graph import Node, freed_error
from flambeau.core.autograd.hooks import run_prehooks
from flambeau.core.modes import grad_mode
from flambeau.core.tensor import tensor_types
from flambeau.distributed.autograd.recording import (
    DistAutogradContext,
    RecvRpcBackward,
    current,
    set_current,
)
from flambeau.futures import Future

# The part whose nodes run in this thread.
running_part: ContextVar[LocalPass | None] = ContextVar("distributed_pass", default=None)


class _All:
    """Contains everything: every leaf is asked for."""

    def __contains__(self, item: object) -> bool:
        return True


class LocalPass(Pass):
    """What waits in this process for gradients, and from where."""

    leaf_targets = _All()

    def __init__(self, context: DistAutogradContext, number: int):
        super().__init__([], True, False, accumulate=False)
        self.context, self.number = context, number
        self.lock = threading.Lock()
        self.expected: set[int] = set()             # messages whose gradients are to come
        self.counts: dict[int, int] = {}            # edges to a node, by order, or to a leaf, by id
        self.inbox: deque[tuple[Any, Any]] = deque()  # edges and gradients that have arrived
        self.works = False                          # does a thread run nodes?
        self.sent: list[Future[Any]] = []           # gradients on their way to other processes
        self.done: Future[Any] = Future()           # all that was expected has run
        self.started = self.over = False

    # ---- who takes part -----------------------------------------------------------------------

    def reach(self, edges: list[Any]) -> list[RecvRpcBackward]:
        """Count the edges behind these; gives the messages that are reached for the first time."""
        received, stack = [], list(edges)
        with self.lock:
            while stack:
                edge = stack.pop()
                if edge is None:
                    continue
                leaf = type(edge) in tensor_types
                key = id(edge) if leaf else edge.order
                self.counts[key] = self.counts.get(key, 0) + 1
                if leaf or self.counts[key] > 1:
                    continue
                stack += edge.node.edges
                if isinstance(edge.node, RecvRpcBackward):
                    received.append(edge.node)
        return received

    # ---- running ------------------------------------------------------------------------------

    def arrive(self, edges: list[Any], gradients: list[Any], message: int | None = None) -> None:
        """Gradients have come, of roots or of what had left by a message: run what can run."""
        with self.lock:
            self.inbox += zip(edges, gradients)
            self.expected.discard(message)
            if self.works or self.over:
                return
            self.works = True
        try:
            self._work_in_scope()
        except Exception as error:
            self.end(error)

    def _work_in_scope(self) -> None:
        before, token = current(), running_part.set(self)
        set_current(self.context)
        try:
            within(current_local_pass, self, within, grad_mode, False, self._work)
        finally:
            running_part.reset(token)
            set_current(before)

    def _work(self) -> None:
        while not self.over:
            with self.lock:
                arrived = list(self.inbox)
                self.inbox.clear()
                if not arrived and not self.ready:
                    self.works = False
                    ended = not self.expected
                    break
            for edge, gradient in arrived:
                self._deliver(edge, gradient, None, 0)
            if self.ready:
                order = heappop(self.ready)
                self._run_node(self.waiting.pop(order), self.grads.pop(order))
        if not self.over and ended:
            self.finish()
            self.end()

    def _run_node(self, node: Node, gradient: Any) -> None:
        if node.saved is None:
            raise freed_error(node)
        produced = self._run_general(node, gradient)
        if not self.retain and node.frees:
            node.saved, node.freed_by = None, self.place
        for position, (edge, found) in enumerate(zip(node.edges, produced)):
            self._deliver(edge, found, node, position)

    def _deliver(self, edge: Any, gradient: Any, node: Node | None, position: int) -> None:
        if edge is None:
            return
        if type(edge) in tensor_types:
            self.deliver_leaf(edge, gradient, node, position)
            return
        if gradient is not None and (gradient._array.shape != edge.shape
                                     or gradient._array.dtype is not edge.dtype):
            gradient = fit(gradient, edge.shape, edge.dtype, node, position)
        order, target = edge.order, edge.node
        if order not in self.waiting:
            self.waiting[order] = target
            self.grads[order] = None if target.outputs == 1 else [None] * target.outputs
        if gradient is not None:
            self._add(order, None if target.outputs == 1 else edge.index, gradient)
        self.counts[order] -= 1
        if self.counts[order] == 0:
            heappush(self.ready, order)

    def _add(self, order: int, index: int | None, gradient: Tensor) -> None:
        slots, place = (self.grads, order) if index is None else (self.grads[order], index)
        old = slots[place]
        slots[place] = gradient if old is None else late_bound.add(old, gradient)

    def _leaf_complete(self, leaf: Tensor, grad: Any) -> None:
        super()._leaf_complete(leaf, grad)              # hooks of the tensor
        grad = self.captured.pop(id(leaf))
        accumulator = leaf._accumulator
        if accumulator is not None and not isinstance(accumulator, Node):
            accumulator = accumulator()
        hooks = None if accumulator is None else accumulator.hooks
        if hooks is not None and hooks.pre:
            grad = run_prehooks(accumulator, hooks, grad)
        if grad is not None:
            self.context.accumulate(leaf, grad)
        if hooks is not None:
            for hook in list(hooks.post.values()):
                hook((), (grad,))

    # ---- the end ------------------------------------------------------------------------------

    def send(self, future: Future[Any]) -> None:
        """Gradients are on their way; if what they set off fails, so does this part."""
        self.sent.append(future)
        future._when_done(lambda: future._error and self.end(future._error))

    def end(self, error: BaseException | None = None) -> None:
        """All is done that can be; nothing happens if that was known."""
        with self.lock:
            if self.over:
                return
            self.over = True
        self.done._complete(None, error)
