"""Dimensions, lists of them, the names that they take, and what they refuse."""
import pytest

import flambeau as torch
from flambeau.functorch.dim import Dim, DimensionBindError, DimList, dimlists, dims


def test_names():
    width, height = dims()
    one = dims()
    only = dims(1)
    assert [repr(d) for d in (width, height, one, only)] == ["width", "height", "one", "only"]
    assert repr(dims(2)) == "(d0, d1)"
    rows, columns = dims(sizes=[2, None])
    assert rows.size == 2 and not columns.is_bound
    with pytest.raises(SyntaxError, match=r"dims\(\) must be assigned"):
        print(dims())
    with pytest.raises(ValueError, match="expected 2 sizes but found 1"):
        dims(2, [3])


def test_sizes():
    i = Dim("i")
    with pytest.raises(ValueError, match="dimension i is unbound"):
        _ = i.size
    i.size = 3
    i.size = 3
    assert i.is_bound and torch.sin(i).order(i).shape == (3,)
    with pytest.raises(DimensionBindError, match="previously bound to a dimension of size 3"):
        i.size = 4
    assert i in {i} and hash(i) != hash(Dim("i", 3))


def test_lists():
    batch = dimlists()
    assert repr(batch) == "*batch" and not batch.is_bound
    x = torch.ones(2, 3, 4)
    k = dims(1)
    named = x[batch, k]
    assert repr(batch) == "(batch0, batch1)" and [d.size for d in batch] == [2, 3]
    assert named.sum(k).order(batch).tolist() == [[4.0] * 3] * 2
    assert x[:, batch[1], 0].dims == (batch[1],)
    fixed = DimList([2, 5], "n")
    assert [d.size for d in fixed] == [2, 5] and len(fixed) == fixed.size == 2
    with pytest.raises(DimensionBindError, match="has size 2 but it is being bound to size 3"):
        fixed.bind_len(3)
    with pytest.raises(DimensionBindError, match="not bound"):
        len(dimlists(1))
