"""The distributed backward pass.

A pass runs from some tensors of this process to its leaves, whose gradients the context collects.
Where tensors came from another process their gradients are sent there, and a pass from what had
been sent runs there. It is done when all passes are that it has set off. Gradients are linear, so
those of several passes through the same leaf just add up.
"""
from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd.differentiate import grad
from flambeau.core.tensor import gradient_edge, tensor_types
from flambeau.distributed.autograd.recording import DistAutogradContext, contexts
from flambeau.futures import Future, collect_all

# Messages that the pass of this thread has sent.
_sent: ContextVar[list[Future[Any]] | None] = ContextVar("sent_gradients", default=None)
running = 0                             # passes
_SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward.")


def _find_leaves(tensors: list[Tensor]) -> list[Tensor]:
    """The leaves that tensors depend on."""
    leaves: dict[int, Tensor] = {}
    seen: set[int] = set()
    stack = [gradient_edge(tensor) for tensor in tensors]
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        if type(edge) in tensor_types:
            leaves[id(edge)] = edge
        elif edge.order not in seen:
            seen.add(edge.order)
            stack += edge.node.edges
    return list(leaves.values())


def run_pass(context: DistAutogradContext, tensors: list[Tensor], gradients: list[Any]
             ) -> Future[Any]:
    """A pass from tensors of this process; done when all passes are that it sets off."""
    from flambeau.distributed.rpc.agent import when_done
    global running
    sent: list[Future[Any]] = []
    token = _sent.set(sent)
    running += 1
    try:
        leaves = _find_leaves(tensors)
        # several passes may come through the same part of the graph: it is kept until the
        # context goes
        for leaf, found in zip(leaves, grad(tensors, leaves, gradients, retain_graph=True,
                                            allow_unused=True)):
            if found is not None:
                context.accumulate(leaf, found)
    finally:
        running -= 1
        _sent.reset(token)
    return when_done(collect_all(sent), lambda done: None)


def send_gradients(context_id: int, message: int, source: int, gradients: tuple[Tensor, ...]
                   ) -> None:
    """Send gradients to the worker that sent the tensors."""
    from flambeau.distributed.rpc.agent import current_agent
    sent, agent = _sent.get(), current_agent()
    future = agent.call(agent.get_worker_info(source), _receive_gradients, (
        context_id, message, list(gradients)))
    if sent is None:
        future.wait()               # an ordinary backward pass of the user
    else:
        sent.append(future)


def _receive_gradients(context_id: int, message: int, gradients: list[Tensor]) -> Future[Any]:
    context = contexts.get(context_id)
    if message in context.freed:
        raise RuntimeError(_SECOND_TIME)
    return run_pass(context, context.sent[message], gradients)


_receive_gradients._answers_later = True            # type: ignore[attr-defined]


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Propagate gradients from scalars, through all processes, into a context.

    Args:
        context_id: the number that `context` gave.
        roots: tensors of one element.
        retain_graph: whether another pass may follow in this context.

    Raises:
        RuntimeError: there is no such context, or a root is no scalar or does not require grad.
    """
    context = contexts.get(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(" is not a scalar, all roots need to be scalar")
    try:
        run_pass(context, roots, [flambeau.ones_like(root) for root in roots]).wait()
    except RuntimeError as error:
        raise RuntimeError(f"Error on Node {contexts.worker}: {error}") from error
    if not retain_graph:
        _free(context_id, next(contexts.messages))


def _free(context_id: int, number: int) -> None:
    """No further pass is to come through what has been sent until now, in all processes."""
    context = contexts.found.get(context_id)
    if context is None or number in context.freed:
        return                      # told already, by another worker
    context.freed |= {number, *context.sent}
    _tell(context.workers, _free, context_id, number)


def release(context_id: int) -> None:
    """Forget a context, in all processes."""
    _tell(contexts.drop(context_id), release, context_id)


def _tell(workers: set[int], function: Any, *args: int) -> None:
    from flambeau.distributed.rpc.agent import _is_current_rpc_agent_set, current_agent
    if not _is_current_rpc_agent_set():
        return
    agent = current_agent()
    for worker in workers - {contexts.worker}:
        agent.call(agent.get_worker_info(worker), function, args, recorded=False)
