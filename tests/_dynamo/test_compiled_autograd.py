"""Backward passes run as they stand."""
import flambeau as torch
from flambeau._dynamo import compiled_autograd


def test_gradients_inside():
    x = torch.tensor([2.0], requires_grad=True)
    with compiled_autograd._disable():
        (x * x).sum().backward()
    assert x.grad.item() == 4 and not compiled_autograd.compiled_autograd_enabled
