"""Ops of the namespace `prims`."""

import pytest

import flambeau as torch
from flambeau import _prims  # noqa: F401


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.complex64])
def test_elements_are_converted(dtype):
    x = torch.tensor([[0.0, 1.5], [-2.5, 3.0]]).t()
    found = torch.ops.prims.convert_element_type(x, dtype)
    assert found.dtype is dtype and torch.equal(found, x.to(dtype))


def test_schema():
    assert str(torch.ops.prims.convert_element_type.default._schema) == (
        "prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
