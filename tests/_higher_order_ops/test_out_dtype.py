"""Results in a wider type."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._higher_order_ops import out_dtype


def test_wider_results():
    x = torch.full((2, 2), 100, dtype=torch.int8)
    assert out_dtype(torch.ops.aten.mm.default, torch.int32, x, x).tolist() == [[20000] * 2] * 2
    with pytest.raises(ValueError, match="must be an OpOverload"):
        out_dtype(torch.mm, torch.int32, x, x)
