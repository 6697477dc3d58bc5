"""Samples of the ops of `flambeau/ops/fft/spectrogram.py`."""
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

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


def test_refusals_of_complex_windows_and_of_alignment():
    x, parts = flambeau.ones(10), flambeau.ones(3, 5, dtype=flambeau.complex64)
    for aligned in (True, False):
        with pytest.raises(RuntimeError, match="should only be set when center = false"):
            flambeau.stft(x, 4, return_complex=True, align_to_window=aligned)
    with pytest.raises(RuntimeError, match=r"^Cannot have onesided output if window or input is c"):
        flambeau.istft(parts, 4, return_complex=True)
    with pytest.raises(RuntimeError, match="Complex windows are incompatible with return_complex="):
        flambeau.istft(parts, 4, window=flambeau.ones(4, dtype=flambeau.complex64))
