"""Functions of quantised tensors: the float function between dequantising and quantising."""
import inspect

import pytest

import flambeau as torch
from flambeau.ao.nn.quantized import functional as qF

F = torch.nn.functional
X = torch.quantize_per_tensor(torch.linspace(-3, 3, 64).reshape(1, 4, 4, 4), 0.05, 60, torch.quint8)


def integers(values, scale, zero):
    return torch.quantize_per_tensor(values, scale, zero, torch.quint8).int_repr().long()


def assert_like(found, values, scale=0.05, zero=60):
    """As the float function gives, rounded; the last place may differ."""
    assert (found.q_scale(), found.q_zero_point()) == (scale, zero)
    assert (found.int_repr().long() - integers(values, scale, zero)).abs().max() <= 1


@pytest.mark.parametrize("name, arguments", [
    ("avg_pool2d", (2,)), ("adaptive_avg_pool2d", ((2, 2),)), ("max_pool2d", (2, 1)),
    ("interpolate", (None, 2)), ("upsample_nearest", (8,)), ("hardtanh", (-0.5, 1.0)),
    ("leaky_relu", (0.1,))])
def test_the_scale_is_that_of_the_input(name, arguments):
    assert_like(getattr(qF, name)(X, *arguments), getattr(F, name)(X.dequantize(), *arguments))


@pytest.mark.parametrize("name, more", [("elu", {"alpha": 0.7}), ("celu", {"alpha": 0.7}),
                                        ("hardswish", {})])
def test_the_scale_is_given(name, more):
    found = getattr(qF, name)(X, 0.03, 100, **more)
    assert_like(found, getattr(F, name)(X.dequantize(), **more), 0.03, 100)


def test_bounds():
    assert_like(qF.clamp(X, -1.0, 0.5), X.dequantize().clamp(-1, 0.5))
    assert_like(qF.threshold(X, 0.2, 0.1), F.threshold(X.dequantize(), 0.2, 0.1))
    assert_like(qF.leaky_relu(X, 0.2, scale=0.1, zero_point=9),
                F.leaky_relu(X.dequantize(), 0.2), 0.1, 9)
    with pytest.raises(ValueError, match="Input to 'threshold' must be specified!"):
        qF.threshold(X, None, 0.1)


def test_linear():
    w = torch.quantize_per_tensor(torch.randn(3, 4), 0.02, 0, torch.qint8)
    b = torch.randn(3)
    wanted = F.linear(X.dequantize(), w.dequantize(), b)
    assert_like(qF.linear(X, w, b, 0.1, 70), wanted, 0.1, 70)
    assert_like(qF.linear(X, w, b), wanted)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n):
    x = torch.quantize_per_tensor(torch.rand(1, 2, *(5,) * n), 0.01, 3, torch.quint8)
    w = torch.quantize_per_tensor(torch.randn(4, 1, *(2,) * n), 0.02, 0, torch.qint8)
    b, conv = torch.randn(4), f"conv{n}d"
    options = {"stride": 2, "padding": 1, "groups": 2}
    wanted = getattr(F, conv)(x.dequantize(), w.dequantize(), b, **options)
    assert_like(getattr(qF, conv)(x, w, b, **options, scale=0.05, zero_point=60), wanted)


def test_what_convolutions_refuse():
    w = torch.quantize_per_tensor(torch.randn(3, 4, 1, 1), 0.02, 0, torch.qint8)
    with pytest.raises(NotImplementedError, match="Only zero-padding is supported!"):
        qF.conv2d(X, w, None, padding_mode="reflect")
    with pytest.raises(NotImplementedError, match=r"Only torch.quint8 is supported for activation"):
        qF.conv2d(w, w, None)
    with pytest.raises(NotImplementedError, match=r"Only torch.qint8 is supported for weight"):
        qF.conv2d(X, X, None)
    with pytest.raises(ValueError, match=r"Input shape must be `\(N, C, H, W\)`!"):
        qF.conv2d(X[0], w, None)


@pytest.mark.parametrize("name, arguments", [
    ("avg_pool2d", (2,)), ("functional.adaptive_avg_pool3d", (2,)), ("interpolate", (4,)),
    ("hardtanh", ()), ("hardsigmoid", ()), ("elu", (1.0, 0)), ("celu", (1.0, 0)),
    ("hardswish", (1.0, 0)), ("clamp", (0.0, 1.0)), ("threshold", (0.0, 1.0))])
def test_floats_are_refused(name, arguments):
    with pytest.raises(ValueError, match=f"Input to 'quantized.{name}' must be quantized!"):
        getattr(qF, name.rpartition(".")[2])(torch.zeros(1, 1, 2, 2), *arguments)


def test_signatures():
    def names(name):
        return list(inspect.signature(getattr(qF, name)).parameters)
    assert names("avg_pool2d") == ["input", "kernel_size", "stride", "padding", "ceil_mode",
                                   "count_include_pad", "divisor_override"]
    assert names("interpolate") == ["input", "size", "scale_factor", "mode", "align_corners"]
    assert names("hardtanh") == ["input", "min_val", "max_val", "inplace"]
    assert names("clamp") == ["input", "min_", "max_"]
    with pytest.raises(NotImplementedError, match="return_indices is not yet implemented!"):
        qF.max_pool2d(X, 2, return_indices=True)
