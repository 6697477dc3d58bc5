"""In place of a node that does the work of several of PyTorch's users see those."""

import weakref

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.autograd.graph import GradientEdge, get_gradient_edge
from flambeau.core.tensor import gradient_edge


def graph(node):
    """The names of the nodes, those of each in brackets after it; leaves are dots."""
    inner = [graph(n) for n, _ in node.next_functions if n is not None]
    return "." if "AccumulateGrad" in node.name() else f"{node.name()}({', '.join(inner)})"


LOG_SOFTMAX = "NllLossBackward0(LogSoftmaxBackward0(.))"


@pytest.mark.parametrize("options, shape, expected", [       # as PyTorch 2.13 shows it
    ({}, (4, 3), LOG_SOFTMAX),
    ({"reduction": "sum"}, (4, 3), LOG_SOFTMAX),
    ({"weight": torch.ones(3)}, (4, 3), LOG_SOFTMAX),
    ({}, (4, 3, 2, 2), "NllLoss2DBackward0(LogSoftmaxBackward0(.))"),
])
def test_cross_entropy(options, shape, expected):
    torch.manual_seed(0)
    x = torch.randn(shape, requires_grad=True)
    target = torch.randint(0, 3, (4, *shape[2:]))
    plainly, = torch.autograd.grad(F.cross_entropy(x, target, **options), x)
    loss = F.cross_entropy(x, target, **options)
    assert graph(loss.grad_fn) == expected
    assert loss.grad_fn is loss.grad_fn
    assert loss.grad_fn.next_functions[0][0] is loss.grad_fn.next_functions[0][0]
    looked, = torch.autograd.grad(loss, x)
    torch.testing.assert_close(looked, plainly)


def test_looking_changes_nothing_in_between():
    x = torch.randn(4, 3, requires_grad=True)
    target = torch.tensor([0, 1, 2, 0])
    hidden = x * 2
    loss = F.cross_entropy(hidden, target)
    later = (hidden * loss).sum() + loss
    graph(later.grad_fn)
    looked, = torch.autograd.grad(later, x)
    hidden = x * 2
    loss = F.cross_entropy(hidden, target)
    plainly, = torch.autograd.grad((hidden * loss).sum() + loss, x)
    torch.testing.assert_close(looked, plainly)


def test_hooks_of_the_nodes_run():
    x = torch.randn(4, 3, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([0, 1, 2, 0]))
    seen = []
    loss.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: seen.append(1))
    loss.grad_fn.register_hook(lambda inputs, outputs: seen.append(2))
    loss.backward()
    assert seen == [2, 1]
    assert x.grad is not None


def test_looking_leaves_the_nodes_as_they_are():
    """What users see is a view: the engine runs the same nodes whether somebody looks or not."""
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    for y in (F.rms_norm(x, (3,)), F.linear(x, w), x[1:, None, 0]):
        inner = gradient_edge(y).node
        before = type(inner), inner.edges, inner.saved, inner.order
        graph(y.grad_fn)
        assert gradient_edge(y).node is inner and before == (
            type(inner), inner.edges, inner.saved, inner.order)
        assert y.grad_fn is not inner


def test_what_is_seen_is_the_same_as_long_as_it_is_held():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y = F.linear(x, w)
    transposed = y.grad_fn.next_functions[1][0]         # nobody holds the node before it
    y.grad_fn.metadata["noted"] = 1
    assert y.grad_fn.next_functions[1][0] is transposed
    assert y.grad_fn.metadata == {"noted": 1}
    given = []
    transposed.register_hook(lambda inputs, outputs: given.append(outputs[0].shape))
    y.grad_fn.register_hook(lambda inputs, outputs: given.append(outputs[0].shape))
    assert y.grad_fn.next_functions[1][0] is transposed
    assert y.grad_fn.metadata == {"noted": 1}
    y.sum().backward()
    assert given == [(4, 2), (3, 2)]
    assert torch.equal(w.grad, x.detach().sum(0).expand(2, 3))


def test_gradients_of_edges_that_are_only_seen():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y = F.linear(x, w)
    last = get_gradient_edge(y)
    assert last.node is y.grad_fn
    weight = GradientEdge(last.node.next_functions[1][0], 0)
    of_y, of_weight = torch.autograd.grad((y * 2).sum(), (last, weight))
    assert torch.equal(of_y, torch.full((4, 2), 2.0))
    torch.testing.assert_close(of_weight, 2 * x.detach().sum(0)[:, None].expand(3, 2))


def test_what_is_seen_is_freed_with_the_node():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y = F.linear(x, w)
    seen = y.grad_fn
    assert seen._saved_self is not None
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        seen._saved_self
    with pytest.raises(RuntimeError, match="already been freed"):
        seen(torch.ones(4, 2))


def test_what_is_seen_outlives_the_result_and_holds_no_circle():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y = F.linear(x, w)
    seen = y.grad_fn
    del y
    assert torch.equal(seen._saved_self, x)
    inner = weakref.ref(seen.part_of[0])
    del seen
    assert inner() is None


def test_hooks_in_a_pass_over_a_part_of_the_graph():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y = F.linear(x, w)
    seen, ran = y.grad_fn, []
    z = y * 2
    z.grad_fn.register_hook(lambda *_: seen.register_hook(lambda *_: ran.append(1)) and None)
    found, = torch.autograd.grad(z.sum(), (x,))
    assert ran == [1]
    torch.testing.assert_close(found, 2 * w.detach().sum(0).expand(4, 3))


def test_a_hook_in_a_pass_on_a_node_behind_one_that_nobody_holds():
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    y, ran = F.linear(x, w), []
    transposed = y.grad_fn.next_functions[1][0]
    z = y * 2
    z.grad_fn.register_hook(
        lambda *_: transposed.register_hook(lambda *_: ran.append(1)) and None)
    z.sum().backward()
    assert ran == [1]
    torch.testing.assert_close(w.grad, 2 * x.detach().sum(0).expand(2, 3))
