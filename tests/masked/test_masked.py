"""Masked reductions against reductions of what the mask selects; masked tensors."""
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


# ---- masked tensors -----------------------------------------------------------------------------

def make(requires_grad=False):
    return masked.masked_tensor(NUMBERS, SELECT, requires_grad)


def test_printed_form():
    assert repr(make()) == ("MaskedTensor(\n  [\n    [  0.0000,       --,   2.0000],\n"
                            "    [      --,       --,       --]\n  ]\n)")
    assert repr(masked.masked_tensor(NUMBERS.int(), SELECT)[0]) == (
        "MaskedTensor(\n  [0,       --, 2]\n)")
    assert repr(make().sum()) == "MaskedTensor(  2.0000, True)"
    assert repr(masked.masked_tensor(torch.tensor(1.0), torch.tensor(False))) == (
        "MaskedTensor(--, False)")


MOVED = {"t": lambda x: x.t(), "index": lambda x: x[:, 1:], "reshape": lambda x: x.reshape(3, 2),
         "stack": lambda x: torch.stack([x, x]), "expand": lambda x: x.expand(2, 2, 3)}
COMPUTED = {"exp": lambda x: x.exp(), "plus": lambda x: x + 1, "from": lambda x: 1 - x,
            "product": lambda x: x * x, "less": lambda x: x < 2, "int": lambda x: x.int(),
            "with": lambda x: x + NUMBERS, "over": lambda x: 1 / x}


@pytest.mark.parametrize("name", [*MOVED, *COMPUTED])
def test_calls(name):
    result = (MOVED | COMPUTED)[name](make())
    mask = MOVED[name](SELECT) if name in MOVED else SELECT
    assert isinstance(result, masked.MaskedTensor) and torch.equal(result.get_mask(), mask)
    wanted = (MOVED | COMPUTED)[name](NUMBERS)
    torch.testing.assert_close(result.get_data()[mask], wanted[mask])


def test_reductions_and_masks():
    x = make()
    for name in ("sum", "mean", "amax", "prod", "std"):
        result = getattr(x, name)(1)
        assert result.get_mask().tolist() == [True, False]
        torch.testing.assert_close(result.get_data()[0], getattr(NUMBERS[0, ::2], name)())
    assert x.to_tensor(9.0).tolist() == [[0, 9, 2], [9, 9, 9]]
    assert x.add_(1) is x and x.sum().item() == 4
    assert torch.where(SELECT, x, x).get_data()[0, 2] == 3


def test_gradients_of_masked_tensors():
    x = make(True)
    (x * x).sum().backward()
    assert x.grad.to_tensor(-1.0).tolist() == [[0, -1, 4], [-1, -1, -1]]
    leaf = torch.tensor([4.0, -1.0], requires_grad=True)
    masked.as_masked_tensor(leaf, torch.tensor([True, False])).sqrt().sum().backward()
    assert leaf.grad.tolist() == [0.25, 0.0]


@pytest.mark.parametrize("call, error, text", [
    (lambda: make() * masked.masked_tensor(NUMBERS, ~SELECT), ValueError, "masks must match"),
    (lambda: masked.masked_tensor(NUMBERS, SELECT.int()), TypeError, "dtype bool"),
    (lambda: masked.masked_tensor(NUMBERS, SELECT[0]), ValueError, "mask.dim"),
    (lambda: masked.masked_tensor(NUMBERS + 1j, SELECT), TypeError, "complex64"),
    (lambda: make() @ make().t(), TypeError, r"unsupported operand type\(s\) for @"),
    (lambda: make().tolist(), RuntimeError, "tolist")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_plain_facts():
    x = masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    assert not x.is_conj() and not x.is_neg() and not x.is_inference()


def test_the_type_of_a_result_with_numbers():
    x = masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    assert torch.result_type(x, 2) is torch.float32
