"""The distributed backward pass.

First all processes find out which of their nodes take part: from the roots, and from what the
messages that are reached had brought. Then gradients move. A node runs once, when all gradients
have come that it gets; where tensors came from another process their gradients are sent there.
What had been sent but leads to no root is not waited for.
"""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.autograd.graph import output_edges
from flambeau.core.tensor import gradient_edge, tensor_types
from flambeau.distributed.autograd.local_pass import LocalPass, running_part
from flambeau.distributed.autograd.recording import DistAutogradContext, RecvRpcBackward, contexts
from flambeau.distributed.rpc.current import (
    _is_current_rpc_agent_set,
    answers_later,
    current_agent,
    when_done,
)
from flambeau.futures import Future, collect_all


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Propagate gradients from scalars, through all processes, into a context.

    Args:
        context_id: the number that `context` gave.
        roots: tensors of one element.
        retain_graph: whether another pass may follow in this context.

    Raises:
        RuntimeError: there is no such context, or a root is no scalar or does not require grad,
            or a process has failed.
    """
    context = contexts.get(context_id)
    edges = _check_roots(roots)
    part = _part(context, next(contexts.messages), retain_graph)
    part.started = True
    try:
        _search(part, edges).wait()
        part.arrive(edges, [flambeau.ones_like(root) for root in roots])
        _outcome(part).wait()
    except Exception as error:
        raise RuntimeError(f"Error on Node {contexts.worker}: {error}") from error
    finally:
        context.passes.pop(part.number, None)


def _check_roots(roots: list[Tensor]) -> list[Any]:
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    edges = []
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(" is not a scalar, all roots need to be scalar")
        edges.append(gradient_edge(root))
        if type(edges[-1]) in tensor_types:
            raise RuntimeError(" does not have a valid gradient function.")
    return edges


def _part(context: DistAutogradContext, number: int, retain: bool) -> LocalPass:
    """The part of a pass that runs here. An earlier one of the same origin is over: it failed."""
    with context.lock:
        found = context.passes.get(number)
        if found is None:
            for other in [n for n in context.passes if n >> 48 == number >> 48 and n < number]:
                del context.passes[other]
            found = context.passes[number] = LocalPass(context, number)
            found.retain = retain
        return found


# Who takes part -----------------------------------------------------------------------------


def _search(part: LocalPass, edges: list[Any]) -> Future[Any]:
    """Find what lies behind these edges, here and in other processes; done when all is found."""
    return _all([_ask(part, node) for node in part.reach(edges)])


def _ask(part: LocalPass, received: RecvRpcBackward) -> Future[Any]:
    """Have the worker that a message came from take part."""
    _, message, source = received.about
    agent = current_agent()
    return agent.call(agent.get_worker_info(source), _take_part, (
        part.context.number, part.number, message, part.retain), recorded=False)


@answers_later
def _take_part(context_id: int, number: int, message: int, retain: bool) -> Future[Any]:
    context = contexts.get(context_id)
    part = _part(context, number, retain)
    with part.lock:
        part.expected.add(message)
    return _search(part, output_edges(context.sent[message]))


# Gradients between processes ----------------------------------------------------------------


def send_gradients(received: RecvRpcBackward, gradients: list[Tensor]) -> None:
    """Send the gradients of a message's tensors to the worker that it came from."""
    context_id, message, source = received.about
    part, agent = running_part.get(), current_agent()
    if part is None:                    # in an ordinary backward pass of the user
        part = LocalPass(contexts.get(context_id), next(contexts.messages))
        _ask(part, received).wait()
    future = agent.call(agent.get_worker_info(source), _receive_gradients, (
        context_id, part.number, message, gradients), recorded=False)
    if running_part.get() is None:
        future.wait()
    else:
        part.send(future)


@answers_later
def _receive_gradients(context_id: int, number: int, message: int, gradients: list[Tensor]
                       ) -> Future[Any]:
    """Go on with a pass. Who was the first to send anything is told how the part here ended."""
    context = contexts.get(context_id)
    part = context.passes.get(number)
    if part is None:
        raise RuntimeError(f"The backward pass {number} has ended here, after an error")
    with part.lock:
        first, part.started = not part.started, True
    part.arrive(output_edges(context.sent[message]), gradients, message)
    if not first:
        return _all([])
    outcome = _outcome(part)
    outcome._when_done(lambda: context.passes.pop(number, None))
    return outcome


def _outcome(part: LocalPass) -> Future[Any]:
    """Done when the part here is, and with it what it has sent."""
    found: Future[Any] = Future()

    def local() -> None:
        if part.done._error is not None:
            found._complete(None, part.done._error)
            return
        sent = _all(part.sent)
        sent._when_done(lambda: found._complete(None, sent._error))
    part.done._when_done(local)
    return found


def _all(futures: list[Future[Any]]) -> Future[Any]:
    return when_done(collect_all(futures), _raise_failures)


def _raise_failures(futures: list[Future[Any]]) -> None:
    for future in futures:
        future.value()


# The end of a context -----------------------------------------------------------------------


def release(context_id: int) -> None:
    """Forget a context, in all processes."""
    workers = contexts.drop(context_id)
    if not _is_current_rpc_agent_set():
        return
    agent = current_agent()
    for worker in workers - {contexts.worker}:
        agent.call(agent.get_worker_info(worker), release, (context_id,), recorded=False)
