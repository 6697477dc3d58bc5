"""Layers that `flambeau/ops/spatial/grid_sampler.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _align in (False, True):
            simple(f"grid_sample_{_mode}_{_padding}_{_align}",
                   lambda t, F, x, g, m=_mode, p=_padding, a=_align: F.grid_sample(
                       x, g, m, p, a), (1, 2, 3, 4), (1, 2, 3, 2))
simple("grid_sample_3d", lambda t, F, x, g: F.grid_sample(x, g, align_corners=False),
       (1, 2, 3, 4, 3), (1, 2, 2, 2, 3), low=-1, high=1)
simple("affine_grid", lambda t, F, x: F.affine_grid(x, [2, 1, 3, 4], False), (2, 2, 3))
simple("affine_grid_3d", lambda t, F, x: F.affine_grid(x, [1, 1, 2, 3, 2], True), (1, 3, 4))


class TestLayers(LayerTests):
    cases = cases
