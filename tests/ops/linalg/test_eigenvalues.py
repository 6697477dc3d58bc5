"""Samples of the ops of `flambeau/ops/linalg/eigenvalues.py`."""
import numpy as np
from matrices import lower_only, of_square
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

of_square(family, "linalg.eigvals")
for _name in ("linalg.eigvalsh",):
    lower_only(family, _name)


@family("linalg.eig")
def _(r):
    # phases are a choice: values alone are compared, in test_decompositions.py
    return [call(np.diag([1.0, 2.0, 4.0])).but(smooth=False)]


@family("linalg.eigh")
def _(r):
    return [call(np.diag([1.0, 2.0, 4.0])).but(smooth=False)]


class TestSamples(SampleTests):
    family = family
