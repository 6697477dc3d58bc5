"""The package itself: names that come when they are asked for, versions of tensors."""
import pytest

import flambeau as torch
from flambeau import autograd


def test_versions_are_preserved_inside():
    x, y = torch.ones(2), torch.ones(2)
    with autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.mul_(2)
    assert (x._version, y._version) == (0, 0)
    x.add_(1)
    assert x._version == 1
    with autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    assert x._version == 1 and x.tolist() == [4.0, 4.0]


def test_checkpoints_are_valid_in_plain_passes_only():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(autograd._is_checkpoint_valid()))
    y.sum().backward(retain_graph=True)
    torch.autograd.grad(y.sum(), x)
    assert seen == [True, False] and autograd._is_checkpoint_valid()


def test_shapes_of_outputs_and_gradients():
    x = torch.ones(2, 3)
    assert autograd._calculate_shape(x, torch.ones(2, 3), False) == ((2, 3), (2, 3))
    assert autograd._calculate_shape(x, torch.ones(5, 2, 3), True) == ((2, 3), (2, 3))
    edge = autograd.graph.get_gradient_edge(x.requires_grad_() * 2)
    assert tuple(autograd._calculate_shape(edge, torch.ones(2, 3), False)[0]) == (2, 3)


def test_names():
    assert autograd.Function is autograd.function.Function
    with pytest.raises(AttributeError, match="no_such_name"):
        autograd.no_such_name
