"""Samples of the ops of `flambeau/ops/view/diagonal.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name, _args in {
    "diagonal": [(), (1,)],
    "diag": [(), (1,)],
    "diag_embed": [(), (1,)],
    "diagflat": [()],
    "tril": [(), (1,)],
    "triu": [(), (-1,)],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


class TestSamples(SampleTests):
    family = family
