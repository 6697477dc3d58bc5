"""Functions that make tensors: sizes and options, in C and in Python alike."""
import pytest

import flambeau as torch


@pytest.mark.parametrize("make", [
    lambda **o: torch.zeros(2, 3, **o), lambda **o: torch.ones((2, 3), **o),
    lambda **o: torch.full([2, 3], 2, **o), lambda **o: torch.empty(torch.Size((2, 3)), **o),
    lambda **o: torch.rand(2, 3, **o), lambda **o: torch.zeros(size=(2, 3), **o)])
def test_options(make):
    x = make(dtype=torch.float64, requires_grad=True)
    assert x.dtype is torch.float64 and x.requires_grad and x.is_leaf and x.shape == (2, 3)
    assert make(device="meta").is_meta and make(layout=torch.strided).device.type == "cpu"


@pytest.mark.parametrize("call,error,said", [
    (lambda: torch.zeros(-1), RuntimeError, "negative"),
    (lambda: torch.zeros("a"), TypeError, r"zeros\(\)"),
    (lambda: torch.zeros(2, dtype="float32"), TypeError, "must be torch.dtype, not str"),
    (lambda: torch.zeros(2, dtype=torch.int64, requires_grad=True), RuntimeError,
     "Only Tensors of floating point and complex dtype can require gradients"),
    (lambda: torch.zeros(2, device="cuda"), AssertionError, "CUDA")])
def test_refusals(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_the_type_follows_from_the_values():
    assert torch.full((2,), 1).dtype is torch.int64
    assert torch.full((2,), 1.0).dtype is torch.get_default_dtype()
    assert torch.full((2,), True).dtype is torch.bool
    assert torch.arange(3).dtype is torch.int64 and torch.arange(3.0).dtype is torch.float32


def test_like_another():
    x = torch.zeros(2, 3, dtype=torch.int16)
    assert torch.ones_like(x).dtype is torch.int16 and torch.empty_like(x).shape == x.shape
    assert torch.zeros_like(x, dtype=torch.float32).dtype is torch.float32
    channels = torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)
    assert torch.ones_like(channels).stride() == channels.stride()


def test_out_gets_the_values():
    out = torch.empty(0)
    assert torch.ones(2, 3, out=out) is out and out.sum() == 6


def test_memory_for_complex32_comes_with_a_warning():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
            x = torch.ones(2, dtype=torch.complex32)
        for make in (lambda: torch.empty_like(x), lambda: torch.zeros(2, dtype=torch.chalf),
                     lambda: torch.randn_like(x), lambda: x + 1):
            with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
                make()
    finally:
        torch.set_warn_always(False)
