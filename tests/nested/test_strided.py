"""Calls with nested tensors of layout strided, which PyTorch has few kernels for."""
import pytest

import flambeau as torch
from flambeau import nested

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3) - 5


@pytest.fixture
def x():
    return nested.nested_tensor([A, B])


def test_operands_have_the_same_parts(x):
    for found, part in zip((x * x + x).unbind(), (A, B), strict=True):
        torch.testing.assert_close(found, part * part + part)
    with pytest.raises(RuntimeError, match="add does not support broadcasting"):
        x + nested.nested_tensor([A, A])
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
        x + A


def test_places_of_a_split_are_read_first(x):
    with pytest.raises(RuntimeError, match="to have dtype of long, but got Float"):
        x.tensor_split(torch.ones(1))
    with pytest.raises(RuntimeError, match="but got a tensor with 3 dims"):
        x.tensor_split(x.long())
    for places in (2, [1], torch.tensor(2)):
        with pytest.raises(NotImplementedError, match=r"aten::slice\.Tensor"):
            x.tensor_split(places)


def test_turned_parts_have_gaps(x):
    turned = x.transpose(1, 2)
    assert x.is_contiguous() and not turned.is_contiguous() and turned.contiguous().is_contiguous()
    for found, part in zip(turned.unbind(), (A, B), strict=True):
        assert torch.equal(found, part.t())


@pytest.mark.parametrize("call, error, message", [
    (lambda x: x.sum(), NotImplementedError, "aten::sum"),
    (lambda x: x.sum(1), RuntimeError, "only be reduced across the last dimension"),
    (lambda x: x.sum(2), RuntimeError, "always requires keepdim=True"),
    (lambda x: x.softmax(0), RuntimeError, "Cannot apply softmax across nested dimension 0"),
    (lambda x: x.permute(0, 2, 1), NotImplementedError, "aten::permute"),
    (lambda x: x.size(1), RuntimeError, "Given dimension 1 is irregular"),
    (lambda x: x.softmax(3), IndexError, "Dimension out of range"),
    (lambda x: x.shape, RuntimeError, "doesn't support sizes")])
def test_refusals(x, call, error, message):
    with pytest.raises(error, match=message):
        call(x)


@pytest.mark.parametrize("call", ["size", "unbind"])
@pytest.mark.parametrize("dim, found", [((1, 2), "tuple"), (1.5, "float")])
def test_dimensions_are_integers(call, dim, found):
    parts = nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(TypeError, match=rf"^{call}\(\): .*'dim'.* must be int, not {found}"):
        getattr(parts, call)(dim)
