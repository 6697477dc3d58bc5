"""`torch._vmap_internals`: batches of gradients."""
import pytest

import flambeau as torch
from flambeau._vmap_internals import _vmap, vmap


def test_slices_of_all_arguments_at_once():
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2)
    dot = _vmap(lambda a, b: (a * b).sum(), in_dims=(0, 1))
    torch.testing.assert_close(dot(x, y), torch.stack([x[i] @ y[:, i] for i in range(2)]))


def test_results_are_stacked_where_out_dims_says():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(_vmap(lambda row: 2 * row, out_dims=1)(x), 2 * x.T)


def test_batches_of_gradients_give_the_jacobian():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x ** 3
    rows = _vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))
    torch.testing.assert_close(rows, torch.diag(3 * x.detach() ** 2))


def test_random_ops_are_refused():
    with pytest.raises(RuntimeError, match="random"):
        _vmap(lambda row: row + torch.randn(3))(torch.ones(2, 3))


def test_the_old_public_name_warns():
    with pytest.warns(FutureWarning, match="Please use `torch.vmap` instead"):
        doubled = vmap(lambda a: 2 * a)
    assert doubled(torch.ones(2)).tolist() == [2.0, 2.0]
