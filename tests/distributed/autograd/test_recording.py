"""Contexts, and which tensors have left and come."""
from __future__ import annotations

import threading

import pytest

import flambeau as torch
from flambeau.distributed.autograd import recording
from flambeau.distributed.autograd.recording import (
    DistAutogradContext,
    RecvRpcBackward,
    SendRpcBackward,
)


def test_numbers_begin_with_the_worker():
    made = recording._Contexts()
    made.start(3)
    assert [next(made.numbers), next(made.numbers)] == [3 << 48, (3 << 48) + 1]
    assert next(made.messages) == 3 << 48


def test_contexts_by_number():
    made = recording._Contexts()
    found = made.get_or_create(5)
    assert made.get(5) is made.get_or_create(5) is found and found._context_id() == 5
    found.workers.add(2)
    assert made.drop(5) == {2} and made.drop(5) == set()
    with pytest.raises(RuntimeError, match="Could not find autograd context with id: 5"):
        made.get(5)


def test_the_context_of_a_thread(monkeypatch):
    monkeypatch.setattr(recording, "contexts", recording._Contexts())
    seen = []
    with recording.within((9, None, None)):
        assert recording.current().number == 9
        other = threading.Thread(target=lambda: seen.append(recording.current()))
        other.start()
        other.join()
        with recording.within(None):
            assert recording.current() is None
        assert recording.current().number == 9
    assert recording.current() is None and seen == [None]


def test_gradients_add_up_beside_the_leaf():
    context, x = DistAutogradContext(1), torch.ones(2, requires_grad=True)
    for value, total in ((1.0, 1.0), (2.0, 3.0)):
        context.accumulate(x, torch.full((2,), value))
        leaf, holder = context.gradients[id(x)]
        assert leaf is x and holder.grad.tolist() == [total] * 2
    assert x.grad is None


def test_nodes_of_messages():
    x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True) * 2
    send = SendRpcBackward([x, y])
    assert send.name() == "torch::distributed::autograd::SendRpcBackward"
    assert send.outputs == 2 and len(send.edges) == 2
    grads = [torch.ones(2), torch.ones(3)]
    assert send.apply(grads) is grads
    assert SendRpcBackward([x]).apply(grads[0]) == (grads[0],)
    came = [torch.zeros(2), torch.zeros(3)]
    sent = []
    received = RecvRpcBackward((1, 2, 0), came, lambda node, gradients: sent.append(gradients))
    assert [t.grad_fn.name() for t in came] == [
        "torch::distributed::autograd::RecvRpcBackward"] * 2
    assert all(t.requires_grad and not t.is_leaf for t in came) and received.edges == ()
    assert received.apply([None, torch.ones(3)]) == ()
    assert [gradient.tolist() for gradient in sent[0]] == [[0.0, 0.0], [1.0, 1.0, 1.0]]
