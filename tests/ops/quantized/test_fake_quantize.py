"""Fake quantisation: the round trip through integers, with the gradient of a clamp."""
import pytest

import flambeau as torch


def test_it_is_the_round_trip():
    x = torch.linspace(-3, 3, 41) + 0.013
    found = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 31)
    wanted = (torch.clamp(torch.round(x / 0.1) + 3, 0, 31) - 3) * 0.1
    assert torch.allclose(found, wanted)
    again = torch.fake_quantize_per_tensor_affine(found, 0.1, 3, 0, 31)
    assert torch.allclose(again, found)


def test_gradients_pass_where_nothing_was_cut():
    x = torch.tensor([-10.0, 0.3, 10.0], requires_grad=True)
    torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -10, 10).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_a_scale_for_each_channel():
    x, scale = torch.randn(2, 5), torch.tensor([0.1, 0.5])
    zero = torch.tensor([0, 1], dtype=torch.int32)
    found = torch.fake_quantize_per_channel_affine(x, scale, zero, 0, -8, 7)
    for row, given, s, z in zip(found, x, scale, zero):
        assert torch.allclose(row, torch.fake_quantize_per_tensor_affine(
            given, s.item(), z.item(), -8, 7))


def test_refusals():
    with pytest.raises(RuntimeError, match="quant_min"):
        torch.fake_quantize_per_tensor_affine(torch.ones(1), 0.1, 0, 5, 1)
    with pytest.raises(RuntimeError, match="zero_point"):
        torch.fake_quantize_per_tensor_affine(torch.ones(1), 0.1, 50, 0, 10)
