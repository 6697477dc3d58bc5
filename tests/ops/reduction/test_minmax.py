"""Samples of the ops of `flambeau/ops/reduction/minmax.py`."""
from sample_tests import SampleTests
from samples import TIES, WITH_NAN, Samples, call

family = Samples()

for _name in ("max", "min"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, 0, True), call(x, r.distinct(3)), call(x, dim=-1),
                call(TIES).but(smooth=False), call(TIES, 1).but(smooth=False),
                call(WITH_NAN).but(smooth=False), call(WITH_NAN, 0).but(smooth=False),
                call(r.real()), call(r.real(), 0), call(r.real(0, 2), 1), call(r.integers(0, 9, 5)),
                call(r.bools(4)), call(r.real(0, 2), 0), call(r.real(0))]
for _name in ("amax", "amin"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, (0, 1), True), call(x, ()), call(r.real()),
                call(TIES).but(smooth=False), call(TIES, 1).but(smooth=False),
                call(r.real(0, 2), 1), call(r.integers(0, 9, 5)), call(r.distinct(2, 3, 2), (0, 2))]
for _name in ("argmax", "argmin"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, 0, True), call(x, keepdim=True), call(TIES, 1),
                call(WITH_NAN), call(WITH_NAN, 1), call(r.real()), call(r.real(), 0)]


@family("aminmax")
def _(r):
    return [call(r.distinct(2, 3)), call(r.distinct(2, 3), dim=1),
            call(r.distinct(2, 3), dim=0, keepdim=True), call(TIES, dim=1).but(smooth=False)]


class TestSamples(SampleTests):
    family = family
