"""Samples of Fourier transforms, spectrograms and windows."""
import numpy as np
from samples import Samples, call

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


for _name in ("fft_c2c", "fft_r2c", "fft_c2r"):
    family.untested[_name] = "through fft.*"


family.untested["stft.center"] = "the overload that pads by itself: see test_fft.py"


@family("stft")
def _(r):
    w = r.probability(8)
    x = r.rng.randn(2, 20)
    return [call(x, 8, window=w, return_complex=True),
            call(x[0], 8, 3, window=w, return_complex=False),
            call(x, 8, 4, 6, window=w[:6], center=False, return_complex=True),
            call(x, 8, window=w, normalized=True, onesided=False, return_complex=True),
            call(x, 8, window=w, pad_mode="constant", return_complex=True),
            call(r.complex(2, 20), 8, window=w)]


@family("istft")
def _(r):
    w = r.probability(8) + 0.2
    return [call(r.complex(2, 5, 6), 8, window=w), call(r.complex(5, 6), 8, 3, window=w),
            call(r.complex(2, 5, 6), 8, 2, 6, window=w[:6], normalized=True),
            call(r.complex(5, 6), 8, window=w, length=9),
            call(r.complex(5, 6), 8, window=w, center=False),
            call(r.complex(2, 8, 6), 8, window=w, onesided=False, return_complex=True)]


f64 = {"dtype": np.dtype("float64")}
WINDOWS = {"hann": {}, "hamming": {}, "blackman": {}, "nuttall": {}, "bartlett": {}, "cosine": {},
           "exponential": {"tau": 2.0}, "gaussian": {"std": 1.5}, "kaiser": {"beta": 4.0},
           "general_hamming": {"alpha": 0.6}, "general_cosine": {"a": [0.4, 0.5, 0.1]}}
for _name, _options in WINDOWS.items():
    @family(f"signal.windows.{_name}")
    def _(r, options=_options):
        return [call(n, sym=sym, **options, **f64) for n in (0, 1, 4, 7) for sym in (True, False)]

for _name in ("bartlett", "hann", "hamming", "blackman", "kaiser"):
    @family(f"{_name}_window")
    def _(r):
        return [call(n, p, **f64) for n in (0, 1, 4, 7) for p in (True, False)]
