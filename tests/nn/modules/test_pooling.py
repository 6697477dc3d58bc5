"""Pooling, adaptive and fractional pooling, and unpooling."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn

cases = Cases()
IMAGES = {1: (2, 3, 8), 2: (2, 3, 6, 7), 3: (1, 2, 5, 4, 6)}
for n, shape in IMAGES.items():
    make = lambda t, name, *args, n=n, **options: getattr(t.nn, f"{name}{n}d")(*args, **options)
    cases(f"MaxPool{n}d", lambda t, make=make: make(t, "MaxPool", 2), shape)
    cases(f"MaxPool{n}d-options", lambda t, make=make: make(
        t, "MaxPool", 2, stride=1, padding=1, dilation=2, return_indices=True, ceil_mode=True),
        shape)
    cases(f"AvgPool{n}d", lambda t, make=make: make(t, "AvgPool", 2), shape)
    cases(f"AvgPool{n}d-options", lambda t, make=make: make(
        t, "AvgPool", 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), shape)
    cases(f"LPPool{n}d", lambda t, make=make: make(t, "LPPool", 2, 2), shape)
    cases(f"AdaptiveAvgPool{n}d", lambda t, make=make: make(t, "AdaptiveAvgPool", 3), shape)
    cases(f"AdaptiveMaxPool{n}d", lambda t, make=make: make(
        t, "AdaptiveMaxPool", 3, return_indices=True), shape)
    cases(f"MaxUnpool{n}d", lambda t, n=n: unpooled(t, n), shape)
cases("AvgPool2d-divisor", lambda t: t.nn.AvgPool2d(2, divisor_override=3), IMAGES[2])
cases("AdaptiveAvgPool2d-None", lambda t: t.nn.AdaptiveAvgPool2d((None, 2)), IMAGES[2])
cases("FractionalMaxPool2d", lambda t: t.nn.FractionalMaxPool2d(
    2, output_size=(3, 4), _random_samples=t.full((2, 3, 2), 0.4)), IMAGES[2])
cases("FractionalMaxPool3d", lambda t: t.nn.FractionalMaxPool3d(
    2, output_ratio=0.5, return_indices=True, _random_samples=t.full((1, 2, 3), 0.4)), IMAGES[3])


def unpooled(t, n):
    """Max pooling and back, as one module."""

    class RoundTrip(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = getattr(t.nn, f"MaxPool{n}d")(2, return_indices=True)
            self.unpool = getattr(t.nn, f"MaxUnpool{n}d")(2)

        def forward(self, x):
            return self.unpool(*self.pool(x), output_size=x.size())

    return RoundTrip()


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/pooling",)


def test_types_and_sizes_that_are_refused():
    with pytest.raises(NotImplementedError, match=r'"max_pool1d_impl" not implemented for'):
        nn.MaxPool1d(2)(torch.rand(2, 3, 4) * 1j)
    with pytest.raises(NotImplementedError, match=r'"max_pool2d" not implemented for'):
        nn.MaxPool1d(2)(torch.rand(2, 3, 4, requires_grad=True) * 1j)
    with pytest.raises(RuntimeError, match=r"adaptive_max_pool1d\(\): Expected input to have non"):
        nn.AdaptiveMaxPool1d(2)(torch.rand(2, 4, 0))


@pytest.mark.parametrize("size, kernel, stride, padding", [
    (7, 3, 2, 1), (8, 2, 2, 0), (5, 3, 1, 1)])
def test_windows(size, kernel, stride, padding):
    x = torch.arange(float(size)).roll(2)
    padded = nn.functional.pad(x, (padding, padding), value=-9.0)
    windows = padded.unfold(0, kernel, stride)
    found = nn.MaxPool1d(kernel, stride, padding)(x[None, None])[0, 0]
    assert torch.equal(found, windows.amax(1))
    zeros = nn.functional.pad(x, (padding, padding)).unfold(0, kernel, stride)
    torch.testing.assert_close(nn.AvgPool1d(kernel, stride, padding)(x[None, None])[0, 0],
                               zeros.mean(1))


def test_unpooling_puts_maxima_back():
    x = torch.rand(1, 2, 6)
    values, places = nn.MaxPool1d(2, return_indices=True)(x)
    found = nn.MaxUnpool1d(2)(values, places)
    assert torch.equal(found, torch.where(found != 0, x, 0)) and (found != 0).sum() == 6
