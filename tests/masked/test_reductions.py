"""Masked reductions against reductions of what the mask selects."""
import math

import pytest

import flambeau as torch
from flambeau import masked
from flambeau.autograd import gradcheck

torch.manual_seed(0)
X = torch.randn(3, 4, 5, dtype=torch.float64)
MASK = torch.rand(3, 4, 5) > 0.4
MASK[0, 1] = False
NUMBERS = torch.arange(6.0).reshape(2, 3)
SELECT = torch.tensor([[True, False, True], [False, False, False]])

# what each reduction gives of the selected elements of a row, and of none
ROWS = {
    "sum": (lambda v: v.sum(), 0), "prod": (lambda v: v.prod(), 1),
    "amax": (lambda v: v.amax(), -math.inf), "amin": (lambda v: v.amin(), math.inf),
    "mean": (lambda v: v.mean(), math.nan), "median": (lambda v: v.median(), math.nan),
    "norm": (lambda v: v.norm(), 0), "logsumexp": (lambda v: v.logsumexp(0), -math.inf),
    "var": (lambda v: v.var() if len(v) > 1 else torch.tensor(math.nan), math.nan),
    "std": (lambda v: v.std() if len(v) > 1 else torch.tensor(math.nan), math.nan)}


@pytest.mark.parametrize("name", ROWS)
def test_reductions_are_those_of_the_selected(name):
    function, empty = ROWS[name]
    found = getattr(masked, name)(X, dim=-1, mask=MASK)
    for i in range(3):
        for j in range(4):
            row = X[i, j][MASK[i, j]]
            wanted = function(row) if len(row) else torch.tensor(empty)
            torch.testing.assert_close(found[i, j], wanted.double(), equal_nan=True)
    if name != "median":
        whole = getattr(masked, name)(X, dim=(0, 1, 2), mask=MASK)
        torch.testing.assert_close(whole, function(X[MASK]))
        assert getattr(masked, name)(X, dim=(), keepdim=True, mask=MASK).shape == (1, 1, 1)


@pytest.mark.parametrize("name, fill", [
    ("softmax", -math.inf), ("log_softmax", -math.inf), ("cumsum", 0), ("cumprod", 1)])
def test_along_a_dimension(name, fill):
    found = getattr(masked, name)(X, 1, mask=MASK)
    wanted = getattr(torch, name)(torch.where(MASK, X, fill), 1)
    torch.testing.assert_close(found, wanted, equal_nan=True)


def test_other_functions():
    assert masked.softmin(X, 0).sum(0).allclose(torch.ones(4, 5, dtype=torch.float64))
    length = masked.norm(masked.normalize(X, 3.0, 2, mask=MASK), 3.0, 2)
    assert length[MASK.any(2)].allclose(torch.ones((), dtype=torch.float64))
    assert masked.argmax(NUMBERS, 1, mask=SELECT).tolist() == [2.0, 0.0]
    assert masked.argmin(NUMBERS, mask=~SELECT).item() == 1
    found = masked.logaddexp(X, X, input_mask=MASK, other_mask=~MASK)
    torch.testing.assert_close(found, X)
    assert masked.var(X, unbiased=False).allclose(X.var(correction=0))


def test_types():
    assert masked.sum(NUMBERS.int(), 1, mask=SELECT).dtype is torch.int64
    assert masked.amax(NUMBERS.int(), 1, mask=SELECT).tolist() == [2, -2147483648]
    assert masked.sum(NUMBERS > 0).item() == 5
    assert masked.sum(NUMBERS, 1, mask=SELECT[0]).tolist() == [2, 8]
    for call, error in ((lambda: masked.mean(NUMBERS.int()), ValueError),
                        (lambda: masked.sum(NUMBERS, (0, 0)), RuntimeError),
                        (lambda: masked.sum(NUMBERS, 2), IndexError),
                        (lambda: masked.sum(X[0, 0], mask=MASK), IndexError),
                        (lambda: masked.sum(NUMBERS.to_sparse()), NotImplementedError)):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "norm", "var", "std", "logsumexp"])
def test_gradients(name):
    x = X[1:, :2].clone().requires_grad_()
    mask = torch.ones(2, 2, 5, dtype=torch.bool)
    mask[0, 0, 1] = mask[1, 1, 3] = False
    assert gradcheck(lambda x: getattr(masked, name)(x, 2, mask=mask), (x,))


def test_a_mask_of_a_masked_tensor_is_its_own():
    x = masked.masked_tensor(NUMBERS, SELECT)
    assert masked.sum(x, 1).tolist() == masked.sum(NUMBERS, 1, mask=SELECT).tolist() == [2, 0]


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "norm"])
def test_without_a_mask_they_are_the_plain_ones(name):
    reduce = getattr(masked, name)
    plain = torch.linalg.vector_norm if name == "norm" else getattr(torch, name)
    torch.testing.assert_close(reduce(X, dim=1), plain(X, dim=1))
    torch.testing.assert_close(reduce(X, dim=(0, 2), keepdim=True),
                               plain(X.transpose(0, 1).flatten(1), dim=1).reshape(1, 4, 1))
