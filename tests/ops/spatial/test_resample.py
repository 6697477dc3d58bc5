"""Layers that `flambeau/ops/spatial/resample.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
for _mode, _shape in (("nearest", (1, 2, 4)), ("linear", (1, 2, 4)), ("nearest", (1, 2, 3, 4)),
                      ("nearest-exact", (1, 2, 3, 4)), ("bilinear", (1, 2, 3, 4)),
                      ("bicubic", (1, 1, 4, 4)), ("area", (1, 2, 4, 3)),
                      ("trilinear", (1, 1, 2, 3, 2)), ("nearest", (1, 1, 2, 3, 2))):
    simple(f"interpolate_{_mode}_{len(_shape)}", lambda t, F, x, m=_mode: F.interpolate(
        x, scale_factor=1.7, mode=m), _shape)
    simple(f"interpolate_{_mode}_{len(_shape)}_size", lambda t, F, x, m=_mode: F.interpolate(
        x, size=5, mode=m), _shape)
for _mode in ("bilinear", "bicubic"):
    simple(f"interpolate_{_mode}_corners", lambda t, F, x, m=_mode: F.interpolate(
        x, size=(3, 7), mode=m, align_corners=True), (1, 1, 5, 4))
    simple(f"interpolate_{_mode}_antialias", lambda t, F, x, m=_mode: F.interpolate(
        x, size=(3, 2), mode=m, antialias=True), (1, 1, 7, 6))


class TestLayers(LayerTests):
    cases = cases
