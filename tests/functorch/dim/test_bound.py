"""Ops on tensors with bound dimensions, against einsum, broadcasting and positions."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.functorch.dim import Tensor, dims


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_products_are_einsums(n, m, size):
    a, b = torch.randn(n, size), torch.randn(size, m)
    i, j, k = dims(3)
    product = (a[i, k] * b[k, j]).sum(k)
    assert product.dims == (i, j) and product.ndim == 0
    torch.testing.assert_close(product.order(i, j), a @ b)
    torch.testing.assert_close(product.order(j, i), (a @ b).T)


def test_dimensions_pair_by_identity():
    a, b = torch.arange(3.0), torch.arange(4.0)
    i, j = dims()
    both = a[i] + b[j] * 2
    assert both.dims == (i, j)
    torch.testing.assert_close(both.order(i, j), a[:, None] + b * 2)
    torch.testing.assert_close((1 - a[i]).order(i), 1 - a)
    assert (i < j).order(i, j).tolist() == [[p < q for q in range(4)] for p in range(3)]


def test_along_dimensions():
    x = torch.randn(3, 4, 5)
    i, j, k = dims()
    named = x[i, j, k]
    torch.testing.assert_close(named.sum((i, k)).order(j), x.sum((0, 2)))
    torch.testing.assert_close(named.softmax(j).order(i, j, k), x.softmax(1))
    torch.testing.assert_close(torch.softmax(named, dim=k).order(i, j, k), x.softmax(2))
    torch.testing.assert_close(named.cumsum(j).order(i, j, k), x.cumsum(1))
    largest = named.max(k)
    assert isinstance(largest.values, Tensor)
    torch.testing.assert_close(largest.values.order(i, j), x.max(2).values)
    torch.testing.assert_close(largest.indices.order(i, j), x.max(2).indices)
    torch.testing.assert_close(named.sort(j).values.order(i, j, k), x.sort(1).values)
    assert len(named.unbind(j)) == 4 and named.unbind(j)[0].dims == (i, k)
    torch.testing.assert_close(x[i].sum(-1).order(i), x.sum(-1))
    with pytest.raises(ValueError, match="keepdim=True"):
        named.prod(j, keepdim=True)
    other = dims(1)
    with pytest.raises(ValueError, match=r"Tensor with dimensions \['i', 'j', 'k'\]"):
        named.sum(other)


def test_functions_of_modules_and_gradients():
    x, w = torch.randn(3, 4), torch.randn(2, 4, requires_grad=True)
    i = dims(1)
    y = torch.nn.functional.linear(x[i], w)
    torch.testing.assert_close(y.order(i), x @ w.T)
    y.order(i).sum().backward()
    torch.testing.assert_close(w.grad, x.sum(0).expand(2, 4))
    assert y.shape == (2,) and y.dtype is torch.float32 and len(y) == 2


def test_order():
    x = torch.arange(24).reshape(2, 3, 4)
    i, j = dims()
    named = x[i, j]
    assert torch.equal(named.order(j, i), x.permute(1, 0, 2))
    assert torch.equal(named.order((j, i)), x.permute(1, 0, 2).reshape(6, 4))
    assert named.order(j).dims == (i,) and torch.equal(named.order(-1, i, j), x.permute(2, 0, 1))
    with pytest.raises(ValueError, match="does not contain dim i or it was specified twice"):
        named.order(i, i)
    k = dims(1)
    assert repr(x[0, 0][k]).endswith("with dims=(k,) sizes=(4,)")


def test_in_place_and_repeats():
    x = torch.zeros(2, 3)
    i, j, k = dims()
    x[i, j].add_(1)
    assert x.tolist() == [[1.0] * 3] * 2
    k.size = 4
    wide = x[i].expand(k)
    assert wide.dims == (k, i) and wide.order(k, i).shape == (4, 2, 3)
    with pytest.raises(RuntimeError, match=r"vmap: .*\.item\(\)"):
        x[i, j].item()
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        _ = x[i].nothing
