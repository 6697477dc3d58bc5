"""Pooling, adaptive and fractional pooling, and unpooling."""
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

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
