"""Reading and writing at places that dimensions name."""
import pytest

import flambeau as torch
from flambeau.functorch.dim import DimensionBindError, dimlists, dims

x = torch.arange(12.0).reshape(3, 4)


def test_between_slices_and_numbers():
    i, j = dims()
    assert torch.equal(x[i, 1:3].order(i), x[:, 1:3]) and torch.equal(x[i, 0].order(i), x[:, 0])
    assert torch.equal(x[..., j].order(j), x.T) and torch.equal(x[None, i].order(i), x[:, None])
    assert torch.equal(x[i][j].order(j, i), x.T)
    square = torch.arange(9).reshape(3, 3)
    k = dims(1)
    assert square[k, k].order(k).tolist() == [0, 4, 8]


def test_one_position_taken_apart():
    i, j = dims()
    with pytest.raises(DimensionBindError, match="cannot infer the sizes of two dimensions"):
        x[:, (i, j)]
    j.size = 2
    assert x[:, (i, j)].order(i, j).shape == (2, 2, 3)
    p, q = dims(sizes=[3, 2])
    with pytest.raises(DimensionBindError, match=r"\(4 != 6\)"):
        x[:, (p, q)]


def test_tensors_as_places():
    i, j = dims()
    places = torch.tensor([2, 0])
    assert torch.equal(x[places[i], j].order(i, j), x[places])
    assert torch.equal(x[places[i]].order(i), x[places])
    k = dims(1)
    assert x[k, torch.tensor([0, 2, 1])[k]].order(k).tolist() == [0.0, 6.0, 9.0]


def test_writing():
    i, j = dims()
    y = torch.zeros(4, 3)
    y[j, i] = x[i, j]
    assert torch.equal(y, x.T)
    y = x.clone()
    y[i, 0] = x[i, 1]
    assert y[:, 0].tolist() == [1.0, 5.0, 9.0]
    k, m = dims()
    y = x.clone()
    y[torch.tensor([2, 0])[k], m] = -1.0
    assert y.sum(1).tolist() == [-4.0, 22.0, -4.0]
    with pytest.raises(DimensionBindError, match="which the place has not"):
        y[:, 0] = x[i, j]


def test_index():
    i, j = dims()
    named = x.index(1, i)
    assert named.dims == (i,) and torch.equal(named.order(i), x.T)
    p, q = dims()
    assert torch.equal(x.index((0, 1), (p, q)).order(q, p), x.T)
    assert torch.equal(named.index(0, j).order(j, i), x)


def test_refusals():
    i, j, k = dims()
    with pytest.raises(ValueError, match="at least 3 indices were supplied"):
        x[i, j, k]
    first, second = dimlists()
    with pytest.raises(DimensionBindError, match="at most one"):
        x[first, second]
    i.size = 7
    with pytest.raises(DimensionBindError, match="size 7 cannot bind to a dimension of size 3"):
        x[i]
