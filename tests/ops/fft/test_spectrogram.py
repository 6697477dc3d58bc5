"""Samples of the ops of `flambeau/ops/fft/spectrogram.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


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


class TestSamples(SampleTests):
    family = family
