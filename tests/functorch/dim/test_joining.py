"""Stacks, rows and pieces along dimensions."""
import pytest

import flambeau as torch
from flambeau.functorch.dim import DimensionBindError, cat, dims, split, stack

x = torch.arange(12.0).reshape(3, 4)


def test_stack():
    i, j = dims()
    both = stack([x[i], x[i] + 1], j)
    assert torch.equal(both.order(i, j), torch.stack([x, x + 1], 1))
    k = dims(1)
    assert torch.equal(stack([x, -x], k, 1).order(k), torch.stack([x, -x]))


def test_cat():
    i, j, n, m = dims()
    rows = cat([x[i], x[j]], 0, n)
    assert rows.order(i, j, n).shape == (3, 3, 8)
    wide = cat([x[i, m], x[i, m] * 2], m, dims(1))
    assert torch.equal(wide.order(i, wide.dims[1]), torch.cat([x, x * 2], 1))


def test_split():
    i, j, left, right = dims()
    left.size = 1
    a, b = x[i, j].split([left, right], j)
    assert torch.equal(a.order(i, left), x[:, :1]) and torch.equal(b.order(i, right), x[:, 1:])
    p, q = dims()
    a, b = split(x, [p, q], 1)
    assert p.size == q.size == 2 and torch.equal(b.order(q), x[:, 2:].T)
    r, s = dims(sizes=[1, 2])
    with pytest.raises(DimensionBindError, match="add up to 3 but the source dimension has size 4"):
        split(x, [r, s], 1)
    assert [piece.shape for piece in split(x[i], 2)] == [(2,), (2,)]
    with pytest.raises(TypeError, match="split sizes must also be dimensions"):
        split(x[i, j], 2, i)
