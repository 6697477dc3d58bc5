"""Layers that `flambeau/ops/spatial/convolve.py` computes."""
import numpy as np
from layer_tests import LayerTests
from layers import Cases

import flambeau

cases = Cases()
simple = cases.simple
simple("conv1d", lambda t, F, x, w, b: F.conv1d(x, w, b), (2, 3, 7), (4, 3, 3), (4,))
simple("conv1d_unbatched", lambda t, F, x, w: F.conv1d(x, w, None, 2, 1), (3, 7), (4, 3, 3))
simple("conv2d", lambda t, F, x, w, b: F.conv2d(x, w, b), (2, 3, 5, 6), (4, 3, 3, 2), (4,))
simple("conv2d_geometry", lambda t, F, x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2)),
       (2, 2, 6, 6), (3, 2, 2, 3))
simple("conv2d_groups", lambda t, F, x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2), (1, 4, 5, 5),
       (6, 2, 3, 3), (6,))
simple("conv2d_depthwise", lambda t, F, x, w: F.conv2d(x, w, groups=3), (2, 3, 4, 4), (3, 1, 2, 2))
simple("conv2d_same", lambda t, F, x, w: F.conv2d(x, w, padding="same", dilation=(1, 2)),
       (1, 2, 5, 5), (2, 2, 2, 3))
simple("conv2d_valid", lambda t, F, x, w: F.conv2d(x, w, padding="valid"), (1, 2, 4, 4),
       (2, 2, 2, 3))
simple("conv3d", lambda t, F, x, w, b: F.conv3d(x, w, b, 1, 1), (1, 2, 3, 4, 3), (2, 2, 2, 2, 2),
       (2,))
simple("conv_transpose1d", lambda t, F, x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), (2, 3, 4),
       (3, 2, 3), (2,))
simple("conv_transpose2d", lambda t, F, x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2, 1),
       (2, 4, 3, 3), (4, 2, 3, 3), (4,))
simple("conv_transpose2d_dilated", lambda t, F, x, w: F.conv_transpose2d(
    x, w, None, 1, (0, 1), 0, 1, (2, 1)), (1, 2, 3, 3), (2, 2, 2, 3))
simple("conv_transpose3d", lambda t, F, x, w: F.conv_transpose3d(x, w, None, 2), (1, 2, 2, 2, 2),
       (2, 1, 2, 2, 2))
simple("conv_tbc", lambda t, F, x, w, b: t.conv_tbc(x, w, b, 1), (5, 2, 3), (3, 3, 2), (2,))


class TestLayers(LayerTests):
    cases = cases


def test_complex_convolution():
    parts = [flambeau.tensor(np.random.RandomState(i).randn(*s)) for i, s in
             enumerate([(1, 2, 5), (1, 2, 5), (3, 2, 2), (3, 2, 2)])]
    x, w = flambeau.complex(*parts[:2]), flambeau.complex(*parts[2:])
    conv = flambeau.conv1d
    real = conv(parts[0], parts[2]) - conv(parts[1], parts[3])
    imag = conv(parts[0], parts[3]) + conv(parts[1], parts[2])
    np.testing.assert_allclose(conv(x, w).numpy(), flambeau.complex(real, imag).numpy(), rtol=1e-12)
