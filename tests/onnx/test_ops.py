"""Nodes of ONNX in a program: placeholders."""
import pytest

import flambeau as torch
from flambeau.onnx import operators, ops


def test_placeholders():
    x = torch.ones(2, 3)
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, torch.tensor([3, 2])).shape == (3, 2)
    a, b = ops.symbolic_multi_out("d::Op", (x,), dtypes=(torch.float32, 7), shapes=((2,), ()))
    assert torch.equal(a, torch.zeros(2)) and torch.equal(b, torch.tensor(0))
    with pytest.raises(ValueError, match="Unsupported attribute type for k"):
        ops.symbolic("d::Op", (), {"k": object()}, dtype=1, shape=())
    with pytest.raises(ValueError, match="Number of dtypes must match number of shapes"):
        ops.symbolic_multi_out("d::Op", (), dtypes=(1,), shapes=())
