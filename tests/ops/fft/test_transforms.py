"""Fourier transforms: what the formula says, types, scalings, errors, and the way back."""
import re

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau import fft, kernels
from flambeau._ops import aten


def noise(*shape, kind="complex", dtype="float64"):
    rng = np.random.RandomState(0)
    x = rng.randn(*shape) + (1j * rng.randn(*shape) if kind == "complex" else 0)
    return flambeau.tensor(x.astype({"float32": "c8", "float64": "c16"}[dtype]
                                    if kind == "complex" else dtype))


@pytest.mark.parametrize("n", [1, 4, 7])
def test_formula(n):
    x = noise(n)
    k = np.arange(n)
    matrix = flambeau.tensor(np.exp(-2j * np.pi * np.outer(k, k) / n))
    assert flambeau.allclose(fft.fft(x), matrix @ x)
    assert flambeau.allclose(fft.fft(x, norm="ortho"), matrix @ x / n ** 0.5)
    assert flambeau.allclose(fft.fft(x, norm="forward"), matrix @ x / n)
    assert flambeau.allclose(fft.ifft(x), matrix.conj() @ x / n)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [4, 5])
def test_inverses(norm, n):
    x, real = noise(3, n), noise(3, n, kind="real")
    assert flambeau.allclose(fft.ifftn(fft.fftn(x, norm=norm), norm=norm), x)
    assert flambeau.allclose(fft.irfft(fft.rfft(real, norm=norm), n, norm=norm), real)
    assert flambeau.allclose(fft.irfft2(fft.rfft2(real, norm=norm), (3, n), norm=norm), real)
    assert flambeau.allclose(fft.hfft(fft.ihfft(real, norm=norm), n, norm=norm), real)
    assert flambeau.allclose(fft.hfftn(fft.ihfftn(real, norm=norm), (3, n), norm=norm), real)
    assert flambeau.equal(fft.ifftshift(fft.fftshift(x)), x)


@pytest.mark.parametrize("call,strides", [
    (lambda x: fft.fft(x), (42, 7, 1)),
    (lambda x: fft.fft(x, dim=0), (1, 35, 5)),
    (lambda x: fft.ifft(x, dim=1), (42, 1, 6)),
    (lambda x: fft.fft(x.transpose(0, 2), dim=0), (1, 7, 42)),
    (lambda x: fft.fftn(x, dim=(2, 0)), (7, 35, 1)),
    (lambda x: fft.rfft(x, dim=1), (28, 1, 4)),
    (lambda x: fft.rfftn(x, dim=(2, 0)), (1, 21, 3)),
    (lambda x: fft.irfft(x, dim=1), (70, 1, 10)),
    (lambda x: fft.ihfftn(x, dim=(1,)), (28, 1, 4)),


])


def test_transformed_dimensions_lie_innermost_in_memory(call, strides):
    assert call(noise(5, 6, 7, kind="real")).stride() == strides


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 10, 12])
def test_sums_that_cancel_are_zero(n):
    expected = flambeau.zeros(n, dtype=flambeau.complex64)
    expected[0] = n
    assert flambeau.equal(fft.fft(flambeau.ones(n)), expected)


@pytest.mark.skipif(not kernels.native_available, reason="NumPy rounds the parts on their own")
@pytest.mark.parametrize("n", range(1, 34))
def test_what_is_its_own_mirror_image_has_a_real_transform(n):
    half = noise(n // 2 + 1, kind="real")
    x = half[[min(j, n - j) for j in range(n)]]
    assert (fft.fft(x).imag == 0).all() and (fft.ifft(x).imag == 0).all()


def test_types():
    assert fft.fft(noise(4, kind="real", dtype="float32")).dtype is flambeau.complex64
    assert fft.fft(noise(4, kind="real")).dtype is flambeau.complex128
    assert fft.fft(flambeau.arange(4)).dtype is flambeau.complex64
    assert fft.irfft(noise(3, dtype="float32")).dtype is flambeau.float32
    assert fft.fftfreq(4).dtype is flambeau.float32


@pytest.mark.parametrize("make,kind,message", [
    (lambda: fft.fft(flambeau.ones(3), n=0), RuntimeError, "Invalid number of data points (0)"),
    (lambda: fft.fft(flambeau.ones(3), norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda: fft.fft(flambeau.ones(3).half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: fft.rfft(noise(3)), RuntimeError,
     "rfft expects a real input tensor, but got ComplexDouble"),
    (lambda: fft.fftn(noise(3, 3), dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
    (lambda: fft.fftn(noise(3, 3), s=(2, 2), dim=(0,)), RuntimeError,
     "When given, dim and shape arguments must have the same length"),
    (lambda: fft.fft(flambeau.tensor(1.0)), IndexError,
     "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: flambeau.stft(flambeau.ones(9), 4), RuntimeError,
     "stft requires the return_complex parameter be given for real inputs"),
    (lambda: flambeau.istft(flambeau.ones(3, 4, 2), 4), RuntimeError,
     "istft requires a complex-valued input tensor"),
    (lambda: flambeau.hann_window(-1), RuntimeError, "hann_window requires non-negative"),
    (lambda: flambeau.signal.windows.gaussian(4, std=-1), ValueError,
     "Standard deviation must be positive, got: -1 instead."),


], ids=range(11))


def test_errors(make, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        make()


def test_spectrogram_and_back():
    x = noise(2, 40, kind="real").requires_grad_()
    window = flambeau.hann_window(8, dtype=flambeau.float64)
    y = flambeau.istft(flambeau.stft(x, 8, window=window, return_complex=True), 8, window=window)
    assert flambeau.allclose(y, x)
    g, = flambeau.autograd.grad(y.sum(), x)
    assert flambeau.allclose(g, flambeau.ones_like(g))


def test_the_overload_of_stft_that_centers_pads_as_the_function_does():
    x, window = flambeau.arange(20.0).sin(), flambeau.hann_window(8)
    given = {"n_fft": 8, "window": window, "return_complex": True}
    assert aten.stft.center(x, **given).equal(flambeau.stft(x, **given))


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

NORMS = (None, "ortho", "forward", "backward")


def draws(r, real):
    return [r.rng.randn] if real else [r.rng.randn, r.complex]


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    @family(f"fft.{_name}")
    def _(r, real=_name in ("rfft", "ihfft")):
        calls = []
        for draw in draws(r, real):
            calls += [call(np.asarray(draw(2, 5)), norm=norm) for norm in NORMS]
            calls += [call(np.asarray(draw(4, 2)), n, 0) for n in (3, 4, 6)]
        return [*calls, call(r.integers(0, 5, 4))]

    @family(f"fft.{_name}n")
    def _(r, real=_name in ("rfft", "ihfft")):
        calls = []
        for draw in draws(r, real):
            calls += [call(np.asarray(draw(2, 3, 4)), norm=norm) for norm in NORMS]
            calls += [call(np.asarray(draw(2, 3, 4)), (4, 3), (2, 0)),
                      call(np.asarray(draw(2, 3, 4)), (3, -1)),
                      call(np.asarray(draw(2, 3, 4)), dim=(1,))]
        return calls

    @family(f"fft.{_name}2")
    def _(r, real=_name in ("rfft", "ihfft")):
        return [call(np.asarray(draw(2, 3, 4)), norm=norm) for draw in draws(r, real)
                for norm in NORMS[:2]] + [call(r.rng.randn(3, 4), (5, 5))]
for _name in ("fftshift", "ifftshift"):
    @family(f"fft.{_name}")
    def _(r):
        return [call(r.rng.randn(3, 4)), call(r.rng.randn(3, 5), 1), call(r.complex(3, 2), (0,))]
for _name in ("fftfreq", "rfftfreq"):
    @family(f"fft.{_name}")
    def _(r):
        return [call(n, d, dtype=np.dtype("float64")) for n in (1, 4, 5) for d in (1.0, 0.3)]


class TestSamples(SampleTests):
    family = family


def test_inverses_of_real_signals_are_conjugate_views():
    """As in PyTorch: `numpy()` wants them resolved."""
    x = flambeau.arange(5.0)
    for found, forward in ((fft.ifft(x), fft.fft(x)), (fft.ihfft(x), fft.rfft(x))):
        assert found.is_conj() and flambeau.allclose(found, forward.conj() / 5)
    assert not fft.ifft(x.to(flambeau.complex64)).is_conj() and not fft.ifftn(x).is_conj()


@pytest.mark.parametrize("transform", [fft.fft, fft.ifft, fft.fftn, fft.irfft, fft.hfft])
def test_gradients_of_real_signals_are_real_parts(transform):
    """The gradient is complex inside: what is given is a view of that, as in PyTorch."""
    x = flambeau.rand(4, 4, dtype=flambeau.float64, requires_grad=True)
    y = transform(x)
    g, = flambeau.autograd.grad(y.real.sum(), x)
    assert g.dtype is flambeau.float64 and g.stride() == (8, 2)
    g, = flambeau.autograd.grad(fft.fft(x, 6).real.sum(), x)
    assert flambeau.allclose(g, flambeau.eye(4, dtype=flambeau.float64)[0] * 6)
