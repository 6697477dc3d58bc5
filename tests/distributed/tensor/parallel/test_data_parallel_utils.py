"""Distributed parameters as local ones, and back."""
from tensor_cases import R, imagined, put

import flambeau as torch
from flambeau.distributed.tensor import DTensor, Shard
from flambeau.distributed.tensor.parallel import _data_parallel_utils as utils


def test_there_and_back():
    with imagined(2) as mesh:
        x = put(torch.arange(6.0).view(3, 2), mesh, Shard(0)).requires_grad_()
        local, spec = utils._flatten_tensor(x)
        assert not isinstance(local, DTensor) and local.is_leaf and local.requires_grad
        assert local.tolist() == [[4, 5]] and spec.placements == (Shard(0),)
        again = utils._unflatten_tensor(local, spec)
        assert again.shape == (3, 2) and again.placements == (Shard(0),)
        (again.to_local() * 3).sum().backward()
        assert local.grad.tolist() == [[3, 3]]


def test_local_tensors_stay():
    x = torch.ones(2)
    assert utils._flatten_tensor(x) == (x, None)


def test_gradients_that_have_arrived():
    assert utils.sync_grad_hook(None) is None
    grad = torch.ones(2)
    assert utils.sync_grad_hook(grad) is grad
    with imagined(2) as mesh:
        whole = put(torch.ones(2), mesh, R)
        assert utils.sync_grad_hook(whole) is whole
