"""Shapes as tensors."""
import pytest

import flambeau as torch
from flambeau.onnx.operators import reshape_from_tensor_shape, shape_as_tensor


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 0, 4)])
def test_shapes(shape):
    found = shape_as_tensor(torch.ones(shape))
    assert found.tolist() == list(shape) and found.dtype is torch.int64


def test_there_and_back():
    x = torch.arange(6.0).view(2, 3)
    assert torch.equal(reshape_from_tensor_shape(x.flatten(), shape_as_tensor(x)), x)
    assert reshape_from_tensor_shape(x, torch.tensor([3, -1])).shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"shape '\[4\]' is invalid for input of size 6"):
        reshape_from_tensor_shape(x, torch.tensor([4]))
