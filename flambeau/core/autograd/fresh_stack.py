"""A thread of its own for what would exhaust the stack: passes inside passes inside passes."""
from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

moved_at: ContextVar[int] = ContextVar("moved_at", default=0)


def on_fresh_stack(function: Callable[..., Any], depth: int, *args: Any) -> Any:
    """Call on a thread of its own: passes inside passes would exhaust this one's stack."""
    context = copy_context()
    answer: list[Any] = []
    context.run(moved_at.set, depth)

    def call() -> None:
        try:
            answer.append((context.run(function, *args), None))
        except BaseException as error:
            answer.append((None, error))
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    result, error = answer[0]
    if error is not None:
        raise error
    return result


def needs_fresh_stack(depth: int) -> bool:
    return moved_at.get() != depth
