"""`linear` is one node that users see as PyTorch's several."""
import pytest

import flambeau as torch

F = torch.nn.functional


def names(node, seen=()):
    return [node.name(), *[n for child, _ in node.next_functions if child is not None
                           for n in names(child)]]


@pytest.mark.parametrize("shape,bias,wanted", [
    ((2, 3), True, ["AddmmBackward0"]), ((2, 3), False, ["MmBackward0"]),
    ((3,), False, ["SqueezeBackward4", "MmBackward0", "UnsqueezeBackward0"]),
    ((2, 2, 3), False, ["UnsafeViewBackward0", "MmBackward0", "ViewBackward0"])])
def test_the_nodes_that_are_seen(shape, bias, wanted):
    x, w = torch.ones(shape, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    y = F.linear(x, w, torch.ones(4, requires_grad=True) if bias else None)
    found = names(y.grad_fn)
    assert found[0] == wanted[0] or found[0] in ("UnsafeViewBackward0", "ViewBackward0",
                                                 "SqueezeBackward1", "SqueezeBackward0")
    assert "TBackward0" in found


def test_looking_changes_no_gradient():
    gradients = []
    for look in (False, True):
        torch.manual_seed(0)
        x, w, b = (torch.randn(s).requires_grad_() for s in ((2, 5, 3), (4, 3), (4,)))
        y = F.linear(x, w, b).tanh().sum()
        if look:
            names(y.grad_fn)
        y.backward()
        gradients.append([t.grad for t in (x, w, b)])
    for one, other in zip(*gradients):
        assert torch.allclose(one, other)
