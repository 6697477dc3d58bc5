"""Layers that `flambeau/ops/spatial/convolve.py` computes."""
import numpy as np
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
import flambeau as torch
import flambeau.nn.functional as F

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


@pytest.mark.parametrize("transposed", [False, True])
def test_double_backward_is_the_derivative_of_the_backward_pass(transposed):
    double = {"dtype": flambeau.float64, "requires_grad": True}
    x, w = flambeau.randn(2, 3, 6, **double), flambeau.randn(3, 3, 3, **double)
    rest = [2], [1], [1], transposed, [0], 1
    out = flambeau.ops.aten.convolution(x, w, None, *rest)
    g = flambeau.randn(out.shape, **double)
    first = flambeau.ops.aten.convolution_backward(g, x, w, [3], *rest, [True] * 3)
    assert {type(part.grad_fn).__name__ for part in first[:2]} == {"ConvolutionBackwardBackward0"}
    ways = [flambeau.randn_like(part) for part in first]
    wanted = flambeau.autograd.grad(first, (g, x, w), ways)
    found = flambeau.ops.aten._convolution_double_backward(*ways, g, w, x, *rest, [True] * 3)
    for a, b in zip(found, wanted):
        assert flambeau.allclose(a, b)
    alone = flambeau.ops.aten._convolution_double_backward(
        None, None, ways[2], g, w, x, *rest, [True] * 3)
    assert alone[0].shape == g.shape and alone[1] is None and alone[2] is None


def test_gradients_of_layers_have_derivatives_by_each_factor():
    from flambeau.nn import grad as gradients
    x, w, g = flambeau.ones(1, 1, 5), flambeau.ones(1, 1, 2), flambeau.ones(1, 1, 4)
    assert gradients.conv1d_input(x.shape, w.requires_grad_(), g).requires_grad
    assert gradients.conv1d_weight(x.requires_grad_(), w.shape, g).requires_grad
    with flambeau.no_grad():
        assert not gradients.conv1d_input(x.shape, w, g).requires_grad


def test_interpolation_on_meta_computes_nothing():
    x = flambeau.empty(4, 4, 2 ** 14, 2 ** 14, device="meta")
    assert flambeau.nn.functional.interpolate(x, scale_factor=2).shape == (4, 4, 2 ** 15, 2 ** 15)


@pytest.mark.parametrize(
    "channels, out, size, kernel, geometry",
    [(3, 5, (9, 33), (3, 3), {"padding": 1}), (8, 40, (7, 7), (3, 2), {"stride": 2}),
     (6, 12, (20, 5), (1, 1), {"groups": 3}), (4, 4, (6, 40), (3, 3), {"groups": 4, "dilation": 2}),
     (16, 13, (1, 1), (1, 1), {}), (5, 3, (50,), (4,), {"stride": 3, "padding": 2}),
     (2, 3, (5, 6, 7), (2, 3, 2), {"padding": (1, 0, 2)})])
@pytest.mark.parametrize("bias", [False, True])
def test_bfloat16_is_rounded_once(channels, out, size, kernel, geometry, bias):
    convolve = getattr(flambeau.nn.functional, f"conv{len(size)}d")
    flambeau.manual_seed(0)
    x = flambeau.randn(3, channels, *size).bfloat16()
    w = flambeau.randn(out, channels // geometry.get("groups", 1), *kernel).bfloat16()
    b = flambeau.randn(out).bfloat16() if bias else None
    want = convolve(x.double(), w.double(), None if b is None else b.double(), **geometry)
    got = convolve(x, w, b, **geometry)
    assert got.dtype is flambeau.bfloat16 and got.shape == want.shape
    assert (got.double() - want).abs().max() <= 2**-8 * want.abs().max()
    flambeau.testing.assert_close(got.double(), want, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("own, other, said", [
    ("complex64", "float32", r"CPUComplexFloatType\) and weight type \(torch.FloatTensor\)"),
    ("float32", "complex64", r"torch.FloatTensor\) and weight type \(CPUComplexFloatType\)"),
    ("complex64", "complex128", r"CPUComplexFloatType\) and weight type \(CPUComplexDoubleType"),
    ("float64", "complex128", "expected scalar type Double but found ComplexDouble")])
def test_types_that_differ_are_named(own, other, said):
    with pytest.raises(RuntimeError, match=said):
        F.conv1d(torch.ones(2, 2, 4, dtype=getattr(torch, own)),
                 torch.ones(2, 2, 2, dtype=getattr(torch, other)))
