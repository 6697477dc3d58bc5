"""The distributed backward pass, whose processes are all this one."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import autograd, rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port


@pytest.fixture(autouse=True)
def alone():
    rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://localhost:{get_free_port()}"))
    yield
    rpc.shutdown()


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def gradients(loss, *leaves):
    """With respect to leaves, of a loss that is computed in a context."""
    with autograd.context() as number:
        autograd.backward(number, [loss()])
        found = autograd.get_gradients(number)
        assert all(x.grad is None for x in leaves)
        return [found[x].tolist() for x in leaves]


def away(function, *args):
    return rpc.rpc_sync("w0", function, args=args)


def test_there_and_back():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert gradients(lambda: (away(torch.mul, x, y) * x).sum(), x, y) == [
        [2 * 1 * 3, 2 * 2 * 4], [1, 4]]


def test_several_roots():
    x = leaf(2.0)
    with autograd.context() as number:
        autograd.backward(number, [(x * 3).sum(), away(torch.exp, x).sum()])
        found = autograd.get_gradients(number)[x]
    torch.testing.assert_close(found, 3 + torch.tensor([2.0]).exp())


def test_a_tensor_that_goes_twice_in_one_message():
    x = leaf(3.0)
    assert gradients(lambda: away(torch.mul, x, x).sum(), x) == [[6]]


def test_what_leads_to_no_root_is_not_waited_for():
    x = leaf(1.0)

    def loss():
        away(torch.mul, x, 5)
        return away(torch.mul, x, 2).sum()
    assert gradients(loss, x) == [[2]]


def test_gradients_add_up_within_a_context_only():
    x = leaf(1.0)
    with autograd.context() as number:
        for total in (2, 4):
            autograd.backward(number, [away(torch.mul, x, 2).sum()])
            assert autograd.get_gradients(number)[x].item() == total
    assert gradients(lambda: away(torch.mul, x, 7).sum(), x) == [[7]]


def test_graphs_are_freed_unless_they_are_kept():
    x = leaf(1.0)
    with autograd.context() as number:
        loss = away(torch.exp, x).sum()
        autograd.backward(number, [loss], retain_graph=True)
        autograd.backward(number, [loss])
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            autograd.backward(number, [loss])


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("not this one")


def test_a_failure_names_the_node():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"Error on Node 0: .*not this one"):
        gradients(lambda: away(Failing.apply, x).sum(), x)


@pytest.mark.parametrize(("roots", "words"), [
    ([], "No tensors provided for gradient computation."),
    ([torch.ones(())], "requires_grad not set on root"),
    ([torch.ones(2, requires_grad=True) * 2], "is not a scalar, all roots need to be scalar")])
def test_roots_that_are_none(roots, words):
    with autograd.context() as number, pytest.raises(RuntimeError, match=words):
        autograd.backward(number, roots)


def test_contexts_end():
    with autograd.context() as number:
        pass
    for call in (lambda: autograd.get_gradients(number), lambda: autograd.backward(
            number, [leaf(1.0).sum()])):
        with pytest.raises(RuntimeError, match=f"autograd context with id: {number}"):
            call()
