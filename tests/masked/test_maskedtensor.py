"""Tensors with elements that do not count."""
import pytest

import flambeau as torch
from flambeau import masked

NUMBERS = torch.arange(6.0).reshape(2, 3)
SELECT = torch.tensor([[True, False, True], [False, False, False]])


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
