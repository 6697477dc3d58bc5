"""Gradients that travel as bytes."""
from __future__ import annotations

import pytest
from hook_cases import gradients

import flambeau as torch
from flambeau.distributed.algorithms.ddp_comm_hooks import quantization_hooks as hooks


def test_bytes_and_back():
    x = torch.tensor([-1.0, 0.0, 0.25, 3.0, 99.0])
    scale, zero = torch.tensor(4 / 255), torch.tensor(64)
    small = hooks._quantize_per_tensor_backend(x, scale, zero)
    assert small.dtype is torch.uint8 and small.tolist() == [0, 64, 80, 255, 255]
    back = hooks._dequantize_per_tensor_backend(small, scale, zero)
    torch.testing.assert_close(back[:4], x[:4], atol=4 / 510, rtol=0)


def test_rows_have_their_own_scale():
    x = torch.tensor([[0.0, 1.0], [0.0, 100.0]])
    scale, zero = torch.tensor([1 / 255, 100 / 255]), torch.tensor([0, 0])
    small = hooks._quantize_per_channel_backend(x, scale, zero)
    assert small.tolist() == [[0, 255], [0, 255]]
    torch.testing.assert_close(hooks._dequantize_per_channel_backend(small, scale, zero), x)


@pytest.mark.parametrize("hook", [hooks.quantization_pertensor_hook,
                                  hooks.quantization_perchannel_hook])
def test_the_mean_is_near(alone, hook):
    exact = gradients(0)
    step = (exact.max() - exact.min()).item() / 255
    torch.testing.assert_close(gradients(0, hook), exact, atol=step, rtol=0)


def test_room_for_all():
    found = hooks._get_allgather_out_list(torch.ones(2, dtype=torch.uint8), 3)
    assert [(f.tolist(), f.dtype) for f in found] == [([0, 0], torch.uint8)] * 3
