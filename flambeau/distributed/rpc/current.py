"""The agent of this process, and what is said of workers and to futures by those that call it."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.futures import Future

if TYPE_CHECKING:
    from flambeau.distributed.rpc.agent import TensorPipeAgent


class WorkerInfo:
    """A worker: its name and number.

    >>> WorkerInfo("trainer0", 0)
    WorkerInfo(id=0, name=trainer0)
    """

    def __init__(self, name: str, id: int):
        if not 0 < len(name) < 128 or not all(c.isascii() and (c.isalnum() or c in "_-:")
                                              for c in name):
            raise RuntimeError("Worker name must match ^[A-Za-z0-9-_:]*$, and must be non-empty "
                               f"and shorter than 128 chars, but got {name}")
        self.name, self.id = name, id

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerInfo) and (self.name, self.id) == (other.name, other.id)

    def __hash__(self) -> int:
        return hash((self.name, self.id))


_agent: TensorPipeAgent | None = None


def current_agent() -> TensorPipeAgent:
    """The agent of this process."""
    if _agent is None:
        raise RuntimeError("Current RPC agent is not set! Did you initialize the RPC framework "
                           "(e.g. by calling `rpc.init_rpc`)?")
    return _agent


def _get_current_rpc_agent() -> TensorPipeAgent:
    return current_agent()


def _is_current_rpc_agent_set() -> bool:
    return _agent is not None


def _set_and_start_rpc_agent(agent: TensorPipeAgent) -> None:
    global _agent
    _agent = agent
    agent.started.set()


def _reset_current_rpc_agent() -> None:
    global _agent
    _agent = None


def when_done(future: Future[Any], use: Callable[[Any], Any]) -> Future[Any]:
    """A future of `use(value)`, or of the same error."""
    found: Future[Any] = Future()
    future._when_done(lambda: found._complete(
        None if future._error else use(future._value), future._error))
    return found


def answers_later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks functions of RPC itself that return a future of the answer."""
    function._answers_later = True              # type: ignore[attr-defined]
    return function
