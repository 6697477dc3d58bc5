"""The part of a backward pass that runs in one process."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.core.tensor import gradient_edge
from flambeau.distributed.autograd.local_pass import LocalPass
from flambeau.distributed.autograd.recording import DistAutogradContext


def part():
    return LocalPass(DistAutogradContext(1), 7)


def found(run, leaf):
    return run.context.gradients[id(leaf)][1].grad


def test_a_node_runs_when_all_has_come():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    runs = []
    y.register_hook(lambda grad: runs.append(grad.tolist()))
    one, two, run = (y * 2).sum(), y.exp().sum(), part()
    edges = [gradient_edge(one), gradient_edge(two)]
    assert run.reach(edges) == []
    run.expected.add(5)                             # the second comes with a message
    run.arrive(edges[:1], [torch.tensor(1.0)])
    assert not run.over and runs == [] and run.context.gradients == {}
    run.arrive(edges[1:], [torch.tensor(1.0)], message=5)
    assert run.over and len(runs) == 1
    torch.testing.assert_close(found(run, x), 6 + 3 * (3 * x.detach()).exp())
    assert x.grad is None and run.done.done()


def test_an_error_ends_the_part():
    x = torch.ones(2, requires_grad=True)
    y = x * 2

    def fail(grad):
        raise ValueError("mine")
    y.register_hook(fail)
    run, edge = part(), gradient_edge(y.sum())
    run.reach([edge])
    run.arrive([edge], [torch.tensor(1.0)])
    assert run.over
    with pytest.raises(ValueError, match="mine"):
        run.done.wait()
    run.end()                                       # what comes later changes nothing
    with pytest.raises(ValueError, match="mine"):
        run.done.value()


def test_hooks_of_leaves():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf))
    run, edge = part(), gradient_edge((x * 2).sum())
    run.reach([edge])
    run.arrive([edge], [torch.tensor(1.0)])
    assert found(run, x).tolist() == [20, 20]


def test_edges_are_counted_once_a_node():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    run = part()
    run.reach([gradient_edge(y + y), gradient_edge(y), None])
    assert sorted(run.counts.values()) == [1, 1, 3]         # the sum, the leaf, the product


def test_what_is_sent_may_fail():
    run, sent = part(), torch.futures.Future()
    run.send(sent)
    assert not run.over
    sent.set_exception(RuntimeError("lost"))
    assert run.over
    with pytest.raises(RuntimeError, match="lost"):
        run.done.wait()
