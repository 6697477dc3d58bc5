"""Samples of the ops of `flambeau/ops/view/shape.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name, _args in {
    "permute": [((1, 0),)],
    "transpose": [(0, 1)],
    "t": [()],
    "movedim": [(0, 1), ((0, 1), (1, 0))],
    "unsqueeze": [(0,), (-1,)],
    "squeeze": [(), (0,), ((0, 1),)],
    "Tensor.expand": [(4, 2, 3), (2, 3)],
    "broadcast_to": [((4, 2, 3),)],
    "select": [(0, 1), (1, -1)],
    "Tensor.sum_to_size": [(1, 3), (3,)],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


@family("Tensor.expand_as")
def _(r):
    return [call(r.real(3), r.real(2, 3)).but(constant=(1,))]


class TestSamples(SampleTests):
    family = family
