from __future__ import annotations

import pytest

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining._backward import (
    _autograd_grad_for_inputs,
    _get_grad_fn_or_grad_acc,
    _null_coalesce_accumulate,
    construct_reverse_graph,
    get_param_groups,
    reverse_closure,
    stage_backward,
    stage_backward_input,
    stage_backward_weight,
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.c = nn.Linear(2, 2, bias=False)
        self.p = nn.Parameter(flambeau.ones(2))
        self.unused = nn.Parameter(flambeau.ones(2))

    def forward(self, x):
        return self.c(flambeau.relu(self.a(x)) * self.p) + x


@pytest.fixture
def net():
    flambeau.manual_seed(0)
    return Net()


@pytest.fixture
def x():
    return flambeau.randn(3, 2, requires_grad=True)


def reference(net, x, weight):
    params = list(net.parameters())
    return flambeau.autograd.grad(net(x), [x, *params], weight, allow_unused=True)


def test_whole_backward(net, x):
    weight = flambeau.randn(3, 2)
    wanted = reference(net, x, weight)
    found = stage_backward((net(x), 3), (weight, None), (x, 3, None))
    flambeau.testing.assert_close(found[0], wanted[0])
    assert found[1:] == (None, None) and x.grad is None
    assert net.unused.grad is None
    found = stage_backward({"a": net(x)}, {"a": weight}, (x,))
    flambeau.testing.assert_close(found[0], wanted[0])
    outputs = (net(x), net(x) * 2)
    found = stage_backward(outputs, (weight, weight), (x,), [0])
    flambeau.testing.assert_close(found[0], wanted[0])


@pytest.mark.parametrize("grads", [None, 3, (flambeau.ones(3, 2),) * 2])
def test_a_failing_backward_says_what_it_had(net, x, grads):
    with pytest.raises(RuntimeError, match=r"(?s)Failed to run stage backward:.*Stage output: "
                                           r"Tensor\(torch.Size\(\[3, 2\]\), grad=True"):
        stage_backward(net(x), grads, (x,))


def test_inputs_first_weights_later(net, x):
    weight = flambeau.randn(3, 2)
    wanted = reference(net, x, weight)
    output = net(x)
    grads, groups = stage_backward_input([output], [weight], [x], net.parameters())
    flambeau.testing.assert_close(grads[0], wanted[0])
    flambeau.testing.assert_close(x.grad, wanted[0])
    assert all(p.grad is None for p in net.parameters())
    assert not output.requires_grad                 # its graph is not held by it
    for _ in range(2):
        found = stage_backward_weight(net.parameters(), groups)
        flambeau.testing.assert_close(list(found), list(wanted[1:]))
        assert all("intermediates" not in group for group in groups)
        groups = []


def test_outputs_that_do_not_depend_on_the_input():
    w = nn.Parameter(flambeau.randn(2, 2))
    q = nn.Parameter(flambeau.randn(2))
    x = flambeau.ones(1, 2, requires_grad=True)
    make = lambda: [x @ w, w.sum() * q, (x * 2).exp()]
    weights = [flambeau.randn_like(output) for output in make()]
    wanted = flambeau.autograd.grad(make(), [x, w, q], weights)
    grads, groups = stage_backward_input(make(), weights, [x], iter([w, q]))
    stage_backward_weight(iter([w, q]), groups)
    flambeau.testing.assert_close([grads[0], w.grad, q.grad], list(wanted))


def test_without_an_input_that_needs_a_gradient(net, x):
    output = net(x.detach())
    assert stage_backward_input([output], None, [x.detach()], net.parameters()) == ((None,), [])
    output.sum().backward()                         # the graph is there still


def test_graphs(net, x):
    output = net(x)
    above = construct_reverse_graph([output.grad_fn])
    start = _get_grad_fn_or_grad_acc(x)
    assert {node.name() for node in above[start]} == {"AddBackward0", "AddmmBackward0"}
    params = [_get_grad_fn_or_grad_acc(p) for p in net.parameters()]
    closure, bounds = reverse_closure([start], set(params), above)
    assert output.grad_fn in closure and start in closure and not bounds
    groups = get_param_groups([start], params, above)
    names = {frozenset(node.name() for node in group["intermediates"]): len(group["params"])
             for group in groups}
    assert names == {frozenset({"AddmmBackward0"}): 2, frozenset({"MulBackward0"}): 1,
                     frozenset({"MmBackward0"}): 1}
    assert _get_grad_fn_or_grad_acc(flambeau.ones(2)) is None


def test_gradients_of_some_inputs(net, x):
    grads = _autograd_grad_for_inputs([net(x)], [x, None, flambeau.ones(2)], [flambeau.ones(3, 2)])
    assert grads[0].shape == (3, 2) and grads[1:] == (None, None)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        _autograd_grad_for_inputs([net(x).sum()], [x, x.clone()])
    assert _autograd_grad_for_inputs([net(x).sum()], [x.clone()], allow_unused=True) == (None,)


def test_sums_of_gradients_that_may_be_missing():
    assert [_null_coalesce_accumulate(*pair) for pair in ((None, None), (1, None), (None, 2))] == [
        None, 1, 2]
    assert _null_coalesce_accumulate(1, 2) == 3
