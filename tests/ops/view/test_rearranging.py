"""Samples of the ops of `flambeau/ops/view/rearranging.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name, _args in {
    "Tensor.repeat": [(2, 1), (2, 1, 3)],
    "tile": [((2,),), ((1, 2, 2),)],
    "repeat_interleave": [(2,), (2, 1)],
    "flip": [((0,),), ((0, 1),)],
    "fliplr": [()],
    "flipud": [()],
    "roll": [(1,), ((1, -1), (0, 1))],
    "rot90": [(), (2, (0, 1)), (-1,)],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


class TestSamples(SampleTests):
    family = family
