"""A node that does what several of PyTorch's do is several when somebody looks."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F


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
