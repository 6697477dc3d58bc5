"""What a distributed backward pass needs to know: which tensors have left, and where others came
from, within a context.

A context has the same number in all processes. A message with tensors that require grad carries
the context's number and one of its own: the sender keeps the tensors under it (`send`), at the
receiver they are outputs of a node whose backward sends their gradients back under it (`recv`).
"""
from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.autograd.engine import accumulate_into
from flambeau.core.autograd.graph import Node, next_order, output_edges
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.tensor import gradient_edge

_current = threading.local()


class DistAutogradContext:
    """What this process has sent and received in a context, and the gradients of its leaves."""

    def __init__(self, number: int):
        self.number = number
        self.sent: dict[int, SendRpcBackward] = {}
        self.received: dict[int, RecvRpcBackward] = {}
        self.workers: set[int] = set()              # that may have something of the context
        self.gradients: dict[int, tuple[Tensor, Tensor]] = {}   # by id: a leaf, who has its `grad`
        self.passes: dict[int, Any] = {}            # parts of backward passes that run here
        self.lock = threading.Lock()

    def _context_id(self) -> int:
        return self.number

    def _known_worker_ids(self) -> set[int]:
        return set(self.workers)

    def _send_functions(self) -> dict[int, Any]:
        return dict(self.sent)

    def _recv_functions(self) -> dict[int, Any]:
        return dict(self.received)

    def accumulate(self, leaf: Tensor, gradient: Tensor) -> None:
        """Add to the gradient of a leaf."""
        with self.lock:
            found = self.gradients.get(id(leaf))
            if found is None:           # alike in memory: what accumulates gradients takes it
                found = self.gradients[id(leaf)] = leaf, leaf.detach().requires_grad_()
            accumulate_into(found[1], gradient, False, 0)


class _Contexts:
    """The contexts of this process, by number."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: dict[int, DistAutogradContext] = {}
        self.start(0)

    def start(self, worker: int) -> None:
        """Numbers from now on begin with the one of the worker, so that no two are the same."""
        self.worker = worker
        self.numbers, self.messages = (itertools.count(worker << 48) for _ in range(2))

    def get(self, number: int) -> DistAutogradContext:
        """A context; RuntimeError if there is none of that number."""
        with self.lock:
            if number not in self.found:
                raise RuntimeError(f"Could not find autograd context with id: {number}")
            return self.found[number]

    def get_or_create(self, number: int) -> DistAutogradContext:
        """A context, new if a message of it comes for the first time."""
        with self.lock:
            return self.found.setdefault(number, DistAutogradContext(number))

    def count_passes(self) -> int:
        """How many contexts have a backward pass that runs here."""
        with self.lock:
            return sum(bool(context.passes) for context in self.found.values())

    def drop(self, number: int) -> set[int]:
        """Forget a context; the workers that know of it."""
        with self.lock:
            found = self.found.pop(number, None)
        return set() if found is None else found.workers


contexts = _Contexts()


def current() -> DistAutogradContext | None:
    """The context of this thread."""
    return getattr(_current, "context", None)


def set_current(context: DistAutogradContext | None) -> None:
    """Set the context of this thread."""
    _current.context = context


@contextlib.contextmanager
def within(about: tuple[int, Any, Any] | None) -> Iterator[None]:
    """Inside, the context of this thread is that of a message."""
    before = current()
    set_current(None if about is None else contexts.get_or_create(about[0]))
    try:
        yield
    finally:
        set_current(before)


class _Message(Node):
    """Where the gradients of a message's tensors go, or come from."""

    __slots__ = ()
    frees, simple = False, False

    def __init__(self, tensors: list[Tensor]):
        self.order, self.saved, self.outputs = next_order(), (), len(tensors)
        self.results = [(tensor._array.shape, tensor._array.dtype) for tensor in tensors]
        self.shape, self.dtype = self.results[0]

    def name(self) -> str:
        return f"torch::distributed::autograd::{type(self).__name__}"


class SendRpcBackward(_Message):
    """Tensors that have left for another process: what comes back are their gradients."""

    __slots__ = ()

    def __init__(self, tensors: list[Tensor]):
        super().__init__(tensors)
        self.edges = tuple(map(gradient_edge, tensors))

    def apply(self, grad: Any) -> Any:
        return (grad,) if self.outputs == 1 else grad


class RecvRpcBackward(_Message):
    """Tensors that have come from another process: their gradients go back there."""

    __slots__ = ()
    accepts_undefined = True            # the other process waits for them

    def __init__(self, about: tuple[int, int, int], tensors: list[Tensor], send: Send):
        super().__init__(tensors)
        self.about, self.send, self.edges = about, send, ()
        for tensor, edge in zip(tensors, output_edges(self)):
            tensor._edge = edge

    def apply(self, grad: Any) -> Any:
        gradients = [grad] if self.outputs == 1 else grad
        self.send(self, [
            flambeau.zeros(shape, dtype=from_numpy_dtype(dtype)) if one is None else one
            for one, (shape, dtype) in zip(gradients, self.results)])
        return ()


Send = Callable[[RecvRpcBackward, list[Tensor]], None]


def attach(tensors: list[Tensor], to: int) -> tuple[tuple[int, Any, Any] | None, list[Tensor]]:
    """What a message to a worker carries of the context: its number, the number of the message
    and which tensors require grad."""
    context = current()
    if context is None:
        return None, tensors
    context.workers.add(to)
    places = [i for i, t in enumerate(tensors) if t.requires_grad] \
        if flambeau.is_grad_enabled() else []
    if not places:
        return (context.number, None, ()), tensors
    number = next(contexts.messages)
    context.sent[number] = SendRpcBackward([tensors[i] for i in places])
    return (context.number, number, tuple(places)), tensors


def receive(tensors: list[Tensor], about: tuple[int, Any, Any] | None, source: int, send: Send
            ) -> list[Tensor]:
    """The tensors of a message, with their history in the worker that they come from; their
    gradients `send` sends there."""
    if about is None:
        return tensors
    context = contexts.get_or_create(about[0])
    context.workers.add(source)
    number, places = about[1:]
    if number is None:
        return tensors
    found = {place: tensors[place].detach() for place in places}
    context.received[number] = RecvRpcBackward((context.number, number, source),
                                               list(found.values()), send)
    return [found.get(place, tensor) for place, tensor in enumerate(tensors)]
