"""Samples of the ops of `flambeau/ops/view/splitting.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()

for _name, _args in {
    "Tensor.unfold": [(1, 2, 1), (0, 2, 1)],
    "narrow": [(1, 1, 2), (1, np.array(1), 2)],
    "chunk": [(2,), (2, 1)],
    "split": [(1,), ([1, 2], 1)],
    "split_with_sizes": [([1, 2], 1)],
    "tensor_split": [(2,), ((1, 2), 1)],
    "unbind": [(), (1,)],
    "hsplit": [(3,)],
    "vsplit": [(2,)],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


@family("dsplit")
def _(r):
    return [call(r.real(1, 2, 4), 2)]


class TestSamples(SampleTests):
    family = family


def test_places_have_their_type_before_a_dimension_is_looked_for():
    with pytest.raises(RuntimeError, match="to have dtype of long, but got Float"):
        flambeau.tensor_split(flambeau.ones(5), flambeau.ones(3), 100)
