"""Samples of the ops of `flambeau/ops/view/reshaping.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name, _args in {
    "reshape": [(((3, 2)),), ((-1,),)],
    "Tensor.view": [(3, 2), (-1,)],
    "flatten": [(), (0, 1)],
    "unflatten": [(1, (3, 1))],
    "ravel": [()],
    "atleast_1d": [()],
    "atleast_2d": [()],
    "atleast_3d": [()],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]
for _name in ("Tensor.view_as", "Tensor.reshape_as"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 3), r.real(3, 2)).but(constant=(1,))]

family.contiguous = ("Tensor.view", "Tensor.view_as")


class TestSamples(SampleTests):
    family = family
