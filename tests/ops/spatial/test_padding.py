"""Padding by what the input holds: NumPy's modes, and the gradient as the transpose."""

import numpy as np
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
import flambeau as torch
import flambeau.nn.functional as F

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pad", [(0, 0), (2, 1), (1, 0, 2, 3), (0, 2, 3, 3), (3, 3, 1, 0, 1, 2)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_sides(mode, pad, dtype):
    shape = (2, 3, *(4, 5, 6)[-(len(pad) // 2):])
    x = flambeau.rand(*reversed(shape), dtype=flambeau.float64)
    x = x.permute(*reversed(range(x.ndim)))
    x = x.to(getattr(flambeau, dtype)).requires_grad_()
    padded = flambeau.nn.functional.pad(x, pad, mode)
    sides = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        sides[-1 - i] = pad[2 * i], pad[2 * i + 1]
    plain = x.detach().double().numpy()
    np.testing.assert_array_equal(padded.detach().double().numpy(),
                                  np.pad(plain, sides, MODES[mode]))
    grad = flambeau.rand_like(padded)
    (back,) = flambeau.autograd.grad(padded, x, grad)
    tolerance = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2}[dtype]
    assert back.shape == x.shape
    np.testing.assert_allclose((back.double() * x.double()).sum().item(),
                               (grad.double() * padded.double()).sum().item(), rtol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_one_side_cut_off(mode):
    x = flambeau.arange(6.0, requires_grad=True).reshape(1, 1, 6)
    padded = flambeau.nn.functional.pad(x, (-2, 2), mode)
    want = {"reflect": [2, 3, 4, 5, 4, 3], "replicate": [2, 3, 4, 5, 5, 5],
            "circular": [2, 3, 4, 5, 2, 3]}[mode]
    assert padded.flatten().tolist() == want
    assert flambeau.autograd.grad(padded.sum(), x)[0].flatten().tolist() == [
        want.count(i) for i in range(6)]


# ---- layers -------------------------------------------------------------------------------------

cases = Cases()
simple = cases.simple
simple("pad_constant", lambda t, F, x: F.pad(x, (1, 2, -1, 1), value=0.5), (2, 3, 3))
for _mode in ("reflect", "replicate", "circular"):
    simple(f"pad_{_mode}1d", lambda t, F, x, m=_mode: F.pad(x, (2, 1), m), (2, 2, 4))
    simple(f"pad_{_mode}2d", lambda t, F, x, m=_mode: F.pad(x, (1, 2, 2, 0), m), (1, 2, 3, 3))
    simple(f"pad_{_mode}3d", lambda t, F, x, m=_mode: F.pad(x, (1, 1, 0, 1, 1, 0), m),
           (1, 1, 2, 2, 2))
simple("pad_circular_negative", lambda t, F, x: F.pad(x, (-1, 2), "circular"), (2, 2, 4))


class TestLayers(LayerTests):
    cases = cases


def test_the_gradient_of_circular_padding_is_a_constant():
    """Padding is linear, so its gradient does not depend on the input."""
    x = torch.ones(1, 3, 4, requires_grad=True)
    y = F.pad(x, (1, 2), "circular")
    grad, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    assert not grad.requires_grad and grad.tolist() == [[[2.0, 2.0, 1.0, 2.0]] * 3]


def test_more_pads_than_dimensions():
    for shape, pad in (((), (1, 2)), ((2,), (1, 2, 1, 2))):
        said = f"Pad length is {len(pad)}while the input has {len(shape)}dimensions"
        with pytest.raises(RuntimeError, match=said):
            torch.constant_pad_nd(torch.ones(shape), pad)
        with pytest.raises(RuntimeError, match="Padding length should be less than or equal"):
            F.pad(torch.ones(shape), pad)
