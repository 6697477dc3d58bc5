"""Samples of the ops of `flambeau/ops/view/join.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("broadcast_tensors")
def _(r):
    return [call(r.real(2, 1), r.real(3))]


for _name in ("cat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag",
              "cartesian_prod", "meshgrid"):
    @family(_name)
    def _(r, name=_name):
        if name in ("block_diag", "cartesian_prod", "meshgrid"):
            kwargs = {"indexing": "ij"} if name == "meshgrid" else {}
            return [call(r.real(2), r.real(3), **kwargs)]
        pair = [r.real(2, 3), r.real(2, 3)]
        calls = [call(pair)]
        return calls + [call(pair, 1), call(tuple(pair), -1)] if name in ("cat", "stack") else calls


@family("combinations")
def _(r):
    return [call(r.real(4)), call(r.real(3), 2, True)]


family.unbatched = ("combinations",)


class TestSamples(SampleTests):
    family = family
