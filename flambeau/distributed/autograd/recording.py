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
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd.function import Function

_current = threading.local()


class DistAutogradContext:
    """What this process has sent and received in a context, and the gradients of its leaves."""

    def __init__(self, number: int):
        self.number = number
        self.sent: dict[int, list[Tensor]] = {}
        self.received: dict[int, Any] = {}
        self.workers: set[int] = set()              # that may have something of the context
        self.gradients: dict[int, tuple[Tensor, Tensor]] = {}       # by id of the leaf
        self.freed: set[int] = set()    # messages through which the last pass has gone
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
            self.gradients[id(leaf)] = leaf, gradient if found is None else found[1] + gradient


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


class _Receive(Function):
    """Tensors that have come from another process."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, about: tuple[int, int, int], *tensors: Tensor) -> Any:
        ctx.about = about
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        from flambeau.distributed.autograd.engine import send_gradients
        send_gradients(*ctx.about, gradients)
        return (None, None, *(None for _ in gradients))


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
    context.sent[number] = [tensors[i] for i in places]
    return (context.number, number, tuple(places)), tensors


def receive(tensors: list[Tensor], about: tuple[int, Any, Any] | None, source: int
            ) -> list[Tensor]:
    """The tensors of a message, with their history in the worker that they come from."""
    if about is None:
        return tensors
    context = contexts.get_or_create(about[0])
    context.workers.add(source)
    number, places = about[1:]
    if number is None:
        return tensors
    anchor = flambeau.zeros(0, requires_grad=True)
    with flambeau.enable_grad():
        found = _Receive.apply(anchor, (context.number, number, source),
                               *(tensors[i].detach() for i in places))
    context.received[number] = found[0].grad_fn
    tensors = list(tensors)
    for place, tensor in zip(places, found):
        tensors[place] = tensor
    return tensors
