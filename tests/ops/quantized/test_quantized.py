"""The package of quantised tensors, through which `torch.ops.quantized` finds its ops."""
import pytest

import flambeau as torch
from flambeau.ops import quantized


def test_ops_are_found_when_asked_for():
    from flambeau.ops.quantized import library
    names = [name for name in vars(library) if not name.startswith("_")]
    assert all(getattr(quantized, name) is getattr(library, name) for name in names[:5])


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="nothing"):
        quantized.nothing


def test_the_namespace_of_the_dispatcher():
    x = torch.quantize_per_tensor(torch.tensor([-1.0, 2.0]), 0.5, 0, torch.qint8)
    both = torch.ops.quantized.add(x, x, 0.5, 0)
    assert both.dequantize().tolist() == [-2, 4]
