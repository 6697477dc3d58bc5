"""Tensors of values, of triangles, and with strides of one's own: against NumPy's."""
import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("n,m", [(3, 3), (2, 4), (4, 2), (0, 3)])
def test_matrices_of_ones_and_triangles(n, m):
    assert np.array_equal(torch.eye(n, m).numpy(), np.eye(n, m))
    for offset in (-1, 0, 2):
        for name in ("tril_indices", "triu_indices"):
            wanted = getattr(np, name)(n, offset, m)
            assert np.array_equal(getattr(torch, name)(n, m, offset).numpy(), wanted)


def test_strides_are_what_was_asked_for():
    x = torch.empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2) and not x.is_contiguous() and x.t().is_contiguous()
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)


def test_strides_without_values():
    like = torch.ones(2, dtype=torch.float64, device="meta")
    for x in (torch.empty_strided((3, 2), (1, 3), device="meta"),
              torch.empty_permuted((3, 2), (1, 0), device="meta"),
              like.new_empty_strided((3, 2), (1, 3))):
        assert x.stride() == (1, 3) and x.device.type == "meta" and not x.is_contiguous()
    huge = torch.empty_strided((10**6, 10**6), (1, 10**6), device="meta")
    assert huge.shape == (10**6, 10**6) and huge.stride() == (1, 10**6)


def test_like_another_in_type_and_place():
    x = torch.zeros(2, dtype=torch.float64)
    assert x.new_tensor([1, 2]).dtype is torch.float64
    assert x.new_ones(3).dtype is x.new_full((3,), 2).dtype is torch.float64
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        x.new_tensor(x)


@pytest.mark.parametrize("call", [lambda: torch.eye(-1), lambda: torch.tril_indices(-1, 2),
                                  lambda: torch.empty_strided((2,), (1, 1))])
def test_refusals(call):
    with pytest.raises(RuntimeError):
        call()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_filled_with_rounded_numbers(dtype):
    for value in (1, 2.5, 0.1, -65504, float("inf"), float("-inf")):
        found = torch.full((5,), value, dtype=dtype)
        assert found.dtype is dtype
        assert found.tolist() == [torch.tensor(value, dtype=dtype).item()] * 5
    assert torch.full((2,), float("nan"), dtype=dtype).isnan().all()
    assert torch.ones(3, dtype=dtype).tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), 1e39, dtype=dtype)
