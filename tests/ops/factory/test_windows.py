"""Samples of the ops of `flambeau/ops/factory/windows.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

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


class TestSamples(SampleTests):
    family = family
