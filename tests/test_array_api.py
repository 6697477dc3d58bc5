"""What the functions of the array API standard are made of (`array_api_compat.torch`)."""

import pytest

import flambeau as torch


def eye(rows, columns, k):
    """As `array_api_compat` makes it: ones written to a diagonal of zeros, even an empty one."""
    z = torch.zeros(rows, columns)
    z.diagonal(offset=k).fill_(1)
    return z


@pytest.mark.parametrize("shape", [(3, 3), (2, 0), (0, 2), (2, 3)])
@pytest.mark.parametrize("k", [0, 5, -5])
def test_ones_on_a_diagonal(shape, k):
    found = eye(*shape, k)
    assert found.shape == shape
    assert found.sum() == (min(shape) if k == 0 else 0)


def test_an_empty_diagonal_is_a_view_that_can_be_written():
    x = torch.zeros(2, 3)
    d = x.diagonal(3)
    assert d.shape == (0,) and d._base is x and d.storage_offset() == 0
    for write in (lambda: d.add_(1), d.zero_, lambda: d.copy_(torch.zeros(0))):
        assert write() is d
    y = torch.ones(2, 3, requires_grad=True)
    (y.diagonal(3).sum() + y.sum()).backward()
    assert y.grad.tolist() == [[1.0] * 3] * 2


def test_bool_is_clipped_by_one_bound():
    x, low = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    assert torch.clamp(x, low).tolist() == [True, True, False]
    assert torch.clamp(x, None, low).tolist() == [False] * 3
    assert x.clone().clamp_(low).tolist() == [True, True, False]
    with pytest.raises(NotImplementedError, match="\"clamp_cpu\" not implemented for 'Bool'"):
        torch.clamp(x, low, low)
    with pytest.raises(NotImplementedError, match="\"clamp_min_scalar_cpu\" not implemented"):
        torch.clamp(x, True)


def test_a_dimension_that_is_not_there_is_named_first():
    x = torch.ones(2, 3, dtype=torch.complex64)
    for sort in (torch.sort, torch.argsort):
        with pytest.raises(IndexError, match="Dimension out of range"):
            sort(x, dim=2)
        with pytest.raises(RuntimeError, match="Sort does not support complex"):
            sort(x, dim=1)
