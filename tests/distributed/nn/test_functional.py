"""Gradients of collectives: each function against what it computes with all processes' tensors in
one place."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import nn

INPUTS = [torch.tensor([1.0, -2.0]), torch.tensor([3.0, 5.0])]
WEIGHTS = [torch.tensor([2.0, 7.0]), torch.tensor([11.0, 13.0])]        # of the outputs


def together(function):
    """The gradients of Σ weight · output, for outputs computed from all inputs."""
    inputs = [x.clone().requires_grad_() for x in INPUTS]
    outputs = function(inputs)
    total = sum((y * w).sum() for y, w in zip(outputs, WEIGHTS))
    return torch.autograd.grad(total, inputs, materialize_grads=True)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def gradients(rank):
    def check(own, all_of_them):
        x = INPUTS[rank].clone().requires_grad_()
        (own(x) * WEIGHTS[rank]).sum().backward()
        torch.testing.assert_close(x.grad, together(all_of_them)[rank])

    check(lambda x: nn.all_reduce(x), lambda xs: [xs[0] + xs[1]] * 2)
    check(lambda x: nn.broadcast(x, 1), lambda xs: [xs[1]] * 2)
    check(lambda x: torch.stack(nn.all_gather(x)).sum(0), lambda xs: [xs[0] + xs[1]] * 2)
    check(lambda x: nn.functional._all_gather_base(torch.empty(4), x)[1:3],
          lambda xs: [torch.cat(xs)[1:3]] * 2)
    check(lambda x: nn.reduce_scatter(torch.empty(1), list(x.split(1))).expand(2),
          lambda xs: [(xs[0] + xs[1])[:1].expand(2), (xs[0] + xs[1])[1:].expand(2)])
    check(lambda x: torch.cat(nn.all_to_all([torch.empty(1)] * 2, list(x.split(1)))),
          lambda xs: list(torch.stack(xs).T))
    check(lambda x: nn.all_to_all_single(torch.empty(2), x), lambda xs: list(torch.stack(xs).T))
    check(lambda x: torch.stack(nn.gather(x, 0)).sum(0) * (rank == 0),
          lambda xs: [xs[0] + xs[1], torch.zeros(2)])
    check(lambda x: nn.reduce(x, 0) * (rank == 0), lambda xs: [xs[0] + xs[1], torch.zeros(2)])
    check(lambda x: nn.scatter(list(x.split(1)), 1).expand(2),
          lambda xs: [xs[1][:1].expand(2), xs[1][1:].expand(2)])
    x = torch.ones(2, requires_grad=True)
    once, = torch.autograd.grad(nn.all_reduce(x ** 3).sum(), x, create_graph=True)
    assert torch.autograd.grad(once.sum(), x)[0].tolist() == [12.0, 12.0]


def test_two_processes(processes):
    processes(gradients)


def test_a_warning_names_the_newer_function(alone):
    with pytest.warns(FutureWarning, match="use torch.distributed._functional_collectives"):
        nn.all_reduce(torch.ones(1), dist.ReduceOp.MAX)
