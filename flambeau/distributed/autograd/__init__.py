"""Gradients through several processes: calls by RPC inside a context are recorded.

>>> with context() as context_id:                                             # doctest: +SKIP
...     loss = rpc.rpc_sync("worker1", flambeau.add, args=(x, y)).sum()
...     backward(context_id, [loss])
...     gradients = get_gradients(context_id)
"""
from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from flambeau import Tensor
from flambeau.distributed.autograd.recording import (
    DistAutogradContext,
    contexts,
    current,
    set_current,
)

__all__ = ["context", "is_available"]


def is_available() -> bool:
    """True: gradients can go through several processes."""
    return True


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Propagate gradients from scalars, through all processes, into a context.

    Args:
        context_id: the number that `context` gave.
        roots: tensors of one element.
        retain_graph: whether another pass may follow in this context.
    """
    from flambeau.distributed.autograd import engine
    if not isinstance(context_id, int) or not isinstance(roots, Sequence):
        raise TypeError(
            "backward(): incompatible function arguments. The following argument types are "
            "supported:\n    1. (contextId: typing.SupportsInt | typing.SupportsIndex, roots: "
            "collections.abc.Sequence[torch.Tensor], retain_graph: bool = False) -> None\n\n"
            f"Invoked with: {context_id!r}, {roots!r}")
    engine.backward(context_id, roots, retain_graph)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The gradients that a context has collected for the leaves of this process."""
    return {leaf: holder.grad for leaf, holder in
            list(contexts.get(context_id).gradients.values())}


def _init(worker_id: int) -> None:
    contexts.start(worker_id)


def _get_max_id() -> int:
    return (contexts.worker << 48) + (1 << 48) - 1


def _new_context() -> DistAutogradContext:
    if current() is not None:
        raise RuntimeError("Already have an autograd context id for this thread.")
    found = contexts.get_or_create(next(contexts.numbers))
    set_current(found)
    return found


def _current_context() -> DistAutogradContext:
    found = current()
    if found is None:
        raise RuntimeError(
            "Current thread doesn't have a valid autograd context. Please wrap your code using: "
            "`with torch.distributed.autograd.context() as context_id` to generate a valid context")
    return found


def _retrieve_context(context_id: int) -> DistAutogradContext:
    return contexts.get(context_id)


def _is_valid_context(context_id: int) -> None:
    contexts.get(context_id)


def _release_context(context_id: int) -> None:
    from flambeau.distributed.autograd import engine
    found = contexts.get(context_id)
    if current() is found:
        set_current(None)
    engine.release(context_id)


def _get_debug_info() -> dict[str, int]:
    return {"num_autograd_contexts": len(contexts.found),
            "num_current_backward_passes": contexts.count_passes()}


class context:
    """`with context() as context_id:` records calls by RPC, and what happens between them, so
    that `backward(context_id, losses)` can propagate gradients through all processes."""

    def __enter__(self) -> int:
        self.autograd_context = _new_context()
        return self.autograd_context._context_id()

    def __exit__(self, exc_type: type[BaseException] | None, exc_value: BaseException | None,
                 traceback: TracebackType | None) -> Any:
        _release_context(self.autograd_context._context_id())
