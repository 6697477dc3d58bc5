"""What a tensor says of itself, and its elements as Python numbers."""
import numpy as np
import pytest

import flambeau as torch

X = torch.arange(24.0).reshape(2, 3, 4)


def test_sizes():
    assert (X.dim(), X.ndimension(), X.numel(), X.nelement(), X.element_size()) == (3, 3, 24, 24, 4)
    assert X.size() == (2, 3, 4) and isinstance(X.size(), torch.Size) and X.size(-1) == 4
    assert X.stride() == (12, 4, 1) and X.stride(-2) == 4
    assert torch.tensor(1.0).size() == () and torch.tensor(1.0).stride() == ()


@pytest.mark.parametrize("call, message", [
    (lambda: X.size(3), r"out of range \(expected to be in range of \[-3, 2\], but got 3\)"),
    (lambda: X.stride(-4), r"Dimension out of range"),
    (lambda: torch.tensor(1.0).size(0), "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: torch.tensor(1.0).stride(0), "Dimension specified as 0 but tensor has no dimensions"),
])
def test_dimensions_that_are_not_there(call, message):
    with pytest.raises(IndexError, match=message):
        call()


def test_places_in_memory():
    part = X[1, 1:, ::2]
    assert part.storage_offset() == 16 and part.stride() == (4, 2)
    assert part.data_ptr() == X.data_ptr() + 16 * 4
    assert torch.empty(0).data_ptr() == 0
    assert not part.is_contiguous() and X.is_contiguous() and X[:1].is_contiguous()


@pytest.mark.parametrize("rank, kind", [(4, torch.channels_last), (5, torch.channels_last_3d)])
def test_memory_formats(rank, kind):
    x = torch.ones(2, 3, 4, 5, 6)[(0,) * (5 - rank)]
    assert x.is_contiguous() and not x.is_contiguous(memory_format=kind)
    moved = x.to(memory_format=kind)
    assert moved.is_contiguous(memory_format=kind) and not moved.is_contiguous()
    assert not torch.ones(3).is_contiguous(memory_format=kind)


@pytest.mark.parametrize("dtype, floating, whole, signed", [
    ("float16", True, False, True), ("bfloat16", True, False, True),
    ("complex64", False, True, True), ("uint8", False, False, False),
    ("bool", False, False, False), ("int8", False, False, True)])
def test_types(dtype, floating, whole, signed):
    x = torch.zeros(1, dtype=getattr(torch, dtype))
    assert (x.is_floating_point(), x.is_complex(), x.is_signed()) == (floating, whole, signed)
    assert torch.is_floating_point(x) == floating


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j])
def test_one_element(value):
    found = torch.tensor(value).item()
    assert found == value and type(found) is type(value)
    assert torch.tensor([[value]]).item() == value


def test_elements_that_are_not_one():
    with pytest.raises(RuntimeError, match="with 2 elements cannot be converted to Scalar"):
        torch.ones(2).item()
    with pytest.raises(RuntimeError, match="with 0 elements cannot be converted to Scalar"):
        torch.ones(0).item()
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        torch.ones((), device="meta").item()


def test_lists():
    assert torch.tensor(2).tolist() == 2 and torch.ones(0, 2).tolist() == []
    assert torch.tensor([[1.5], [2.5]], dtype=torch.bfloat16).tolist() == [[1.5], [2.5]]
    assert torch.tensor([1, 0], dtype=torch.bool).tolist() == [True, False]


def test_arrays():
    x = torch.ones(2)
    x.numpy()[0] = 5
    assert x.tolist() == [5, 1]
    grad = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
        grad.numpy()
    np.testing.assert_array_equal(grad.numpy(force=True), [1, 1])
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        x.bfloat16().numpy()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        torch.ones(2, device="meta").numpy()


def test_requires_grad():
    x = torch.ones(2)
    assert x.requires_grad_() is x and x.requires_grad
    assert not x.requires_grad_(False).requires_grad
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require grad"):
        torch.ones(2, dtype=torch.int64).requires_grad_()


def test_same_sizes():
    assert X.is_same_size(X + 1) and not X.is_same_size(X[0])
    assert X.get_device() == -1 and not X.is_distributed() and not X.is_inference()
