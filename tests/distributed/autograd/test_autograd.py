"""Gradients through several processes; values and words from PyTorch."""
from __future__ import annotations

import math

import pytest

import flambeau as torch
from flambeau.distributed import autograd, rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.optim import DistributedOptimizer


def start(rank, port, size):
    rpc._init_counter = 0           # these workers have not all been in all groups before
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=size,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
                     init_method=f"tcp://localhost:{port}"))


def raised(function):
    with pytest.raises(RuntimeError) as found:
        function()
    return str(found.value)


WEIGHT = torch.tensor([2., 5.], requires_grad=True)         # of each process


def through(x, path):
    """(x * weight) through the workers of a path."""
    x = x * WEIGHT
    return rpc.rpc_sync(path[0], through, args=(x, path[1:])) if path else x


def gradient(context_id):
    found = autograd.get_gradients(context_id)
    return found.get(WEIGHT)


def loss_of(a, b):
    return (a * b).sum()


def check_gradients(rank, port):
    start(rank, port, 3)
    if rank == 0:
        a, b = torch.ones(2, requires_grad=True), torch.full((2,), 3., requires_grad=True)
        with autograd.context() as context_id:
            loss = rpc.rpc_sync("w1", torch.mul, args=(a, b)).sum()
            autograd.backward(context_id, [loss])
            found = autograd.get_gradients(context_id)
            assert found[a].tolist() == [3, 3] and found[b].tolist() == [1, 1] and len(found) == 2
            assert a.grad is None
            context = autograd._current_context()
            assert context._known_worker_ids() == {1} and list(context._send_functions()) == [0]
            assert "backward through the graph a second time" in raised(
                lambda: autograd.backward(context_id, [loss]))
        assert raised(lambda: autograd.get_gradients(context_id)) == \
            f"Could not find autograd context with id: {context_id}"
        with autograd.context() as context_id:          # there and back through all, twice
            x = torch.ones(2, requires_grad=True)
            loss = (through(x, ["w1", "w2", "w0"]) + through(x, ["w1"])).sum()
            autograd.backward(context_id, [loss], retain_graph=True)
            autograd.backward(context_id, [loss])
            assert autograd.get_gradients(context_id)[x].tolist() == [40, 1300]
            # d/dw of w^2 v u + w v, twice; all weights are the same number
            assert gradient(context_id).tolist() == [2 * (2 * 8 + 2), 2 * (2 * 125 + 5)]
            assert rpc.rpc_sync("w2", gradient, args=(context_id,)).tolist() == [16, 250]
        with autograd.context() as context_id:
            rpc.remote("w1", loss_of, args=(a, b)).backward(context_id)
            assert autograd.get_gradients(context_id)[a].tolist() == [3, 3]
            loss = rpc.remote("w1", torch.add, args=(a, b)).to_here().sum()
            autograd.backward(context_id, [loss])
            assert autograd.get_gradients(context_id)[a].tolist() == [4, 4]
    rpc.shutdown()
    assert autograd._get_debug_info() == {"num_autograd_contexts": 0,
                                          "num_current_backward_passes": 0}


def count_up(reference):
    reference.local_value().append(1)


def watched(x, calls):
    """2x, and a hook that counts how often its gradient comes."""
    x = x * 1
    x.register_hook(lambda gradient: count_up(calls) and None)
    return x * 2


def check_nodes_run_once(rank, port):
    start(rank, port, 2)
    if rank == 0:
        x = torch.ones(2, requires_grad=True)
        calls = rpc.remote("w1", list)
        with autograd.context() as context_id:
            a = rpc.rpc_sync("w1", watched, args=(x, calls))
            rpc.rpc_sync("w1", torch.mul, args=(x, x))          # not used: nothing waits for it
            b = rpc.rpc_sync("w1", torch.mul, args=(a, 3))
            c = rpc.rpc_sync("w1", torch.exp, args=(a,))
            autograd.backward(context_id, [(b + c).sum()])
            found = autograd.get_gradients(context_id)[x]
        assert found.tolist() == pytest.approx([2 * (3 + math.exp(2))] * 2)
        assert len(calls.to_here()) == 1
        with autograd.context() as context_id:
            left = autograd._current_context()
            y = rpc.rpc_sync("w1", torch.add, args=(x, x * 2))
            send, = left._send_functions().values()
            assert send.name() == "torch::distributed::autograd::SendRpcBackward"
            assert [node.name() for node, _ in send.next_functions] == [
                "torch::autograd::AccumulateGrad", "MulBackward0"]
            assert y.grad_fn.name() == "torch::distributed::autograd::RecvRpcBackward"
    rpc.shutdown()


def test_nodes_run_once(processes):
    processes(check_nodes_run_once, get_free_port(), group=False)


def parameter():
    return torch.nn.Parameter(torch.ones(2))


def squared(reference):
    return (reference.local_value() ** 2).sum()


def check_optimizer(rank, port, optimizer, options, expected):
    start(rank, port, 2)
    if rank == 0:
        references = [rpc.remote(f"w{i}", parameter) for i in range(2)]
        optimizer = DistributedOptimizer(optimizer, references, **options)
        for _ in range(2):
            with autograd.context() as context_id:
                loss = sum(rpc.rpc_sync(reference.owner(), squared, args=(reference,))
                           for reference in references)
                autograd.backward(context_id, [loss])
                optimizer.step(context_id)
        for reference in references:
            assert reference.to_here().tolist() == pytest.approx([expected] * 2)
    rpc.shutdown()


def test_gradients(processes):
    processes(check_gradients, get_free_port(), size=3, group=False)


@pytest.mark.parametrize(("optimizer", "options", "expected"), [
    (torch.optim.SGD, {"lr": 0.1}, 0.64), (torch.optim.Adam, {"lr": 0.1}, 0.800412)])
def test_optimizers(processes, optimizer, options, expected):
    processes(check_optimizer, get_free_port(), optimizer, options, expected, group=False)


@pytest.fixture
def alone():
    start(0, get_free_port(), 1)
    yield
    rpc.shutdown()


def test_what_cannot_be_propagated(alone):
    x = torch.ones(2, requires_grad=True)
    assert raised(lambda: autograd.backward(99, [x.sum()])) == \
        "Could not find autograd context with id: 99"
    assert "Current thread doesn't have a valid autograd context" in raised(
        autograd._current_context)
    with autograd.context() as context_id:
        for roots, words in (([], "No tensors provided for gradient computation."),
                             ([x * 2], " is not a scalar, all roots need to be scalar"),
                             ([torch.ones(())], "requires_grad not set on root")):
            assert raised(lambda: autograd.backward(context_id, roots)) == words    # noqa: B023
        assert raised(autograd.context().__enter__) == \
            "Already have an autograd context id for this thread."


def test_references_of_the_own_process(alone):
    x = torch.ones(2, requires_grad=True)
    rpc.RRef((x * 3).sum()).backward()
    assert x.grad.tolist() == [3, 3]
    assert raised(rpc.RRef(3).backward) == "RRef should contain a tensor for .backward()"
    with autograd.context() as context_id:
        loss = rpc.rpc_sync("w0", torch.mul, args=(x, 2)).sum()
        autograd.backward(context_id, [loss])
        assert autograd.get_gradients(context_id)[x].tolist() == [2, 2]
    # without a context nothing is recorded
    assert not rpc.rpc_sync("w0", torch.mul, args=(x.detach(), 2)).requires_grad
