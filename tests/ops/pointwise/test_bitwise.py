"""Samples of the ops of `flambeau/ops/pointwise/bitwise.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
              "bitwise_right_shift", "gcd", "lcm"):
    @family(_name)
    def _(r, numbers=_name not in ("gcd", "lcm")):
        return [call(r.integers(0, 50, 2, 3), r.integers(1, 7, 3)),
                call(r.integers(-50, 50, 5), r.integers(0, 7, 5)),
                *([call(r.integers(0, 50, 3), 3), call(5, r.integers(1, 7, 3))] if numbers else [])]
    family.pointwise[_name] = 2


@family("bitwise_not")
def _(r):
    return [call(r.integers(-50, 50, 5)), call(r.bools(4))]


family.pointwise["bitwise_not"] = 1


class TestSamples(SampleTests):
    family = family
