"""Tensors made for tests."""

import pytest

import flambeau
from flambeau.testing import make_tensor


@pytest.mark.parametrize("dtype", [flambeau.bool, flambeau.uint8, flambeau.int8, flambeau.int64,
                                   flambeau.float16, flambeau.float32, flambeau.bfloat16,
                                   flambeau.complex64])
def test_made_tensors_are_in_range(dtype):
    x = make_tensor((50, 3), dtype=dtype, device="cpu")
    assert x.shape == (50, 3) and x.dtype is dtype
    parts = flambeau.view_as_real(x) if dtype.is_complex else x
    values = parts.to(flambeau.float64)
    low = 0 if dtype in (flambeau.bool, flambeau.uint8) else -9
    assert float(values.min()) >= low and float(values.max()) <= 9
    assert len(set(values.flatten().tolist())) > 1


def test_options_of_made_tensors():
    x = make_tensor(2, 3, dtype=flambeau.float32, device="cpu", noncontiguous=True)
    assert x.stride() == (6, 2)
    x = make_tensor(100, dtype=flambeau.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert x.tolist() == [1] * 100
    assert make_tensor(1, dtype=flambeau.float32, device="cpu", requires_grad=True).is_leaf
    for bad in ({"low": 1, "high": 0}, {"low": float("nan")},
                {"noncontiguous": True, "memory_format": flambeau.contiguous_format}):
        with pytest.raises(ValueError):
            make_tensor(1, dtype=flambeau.float32, device="cpu", **bad)
    with pytest.raises(ValueError, match="`requires_grad=True` is not supported"):
        make_tensor(1, dtype=flambeau.int64, device="cpu", requires_grad=True)


def test_made_tensors_keep_every_memory_format():
    x = make_tensor(2, 3, 4, dtype=flambeau.float32, device="cpu",
                    memory_format=flambeau.preserve_format)
    assert x.is_contiguous(memory_format=flambeau.preserve_format)
    assert not x.mT.is_contiguous(memory_format=flambeau.preserve_format)
