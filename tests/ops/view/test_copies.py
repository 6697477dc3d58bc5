"""Samples of the ops of `flambeau/ops/view/copies.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("index_copy")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0]), r.real(2, 2))]


def x(r, *shape):
    return np.asarray(r.rng.randn(*shape))


COPIES = {
    "alias_copy": [()], "as_strided_copy": [((2, 2), (1, 2), 1)],
    "diagonal_copy": [(), (1,)], "expand_copy": [((2, 3, 4),)], "permute_copy": [((1, 0),)],
    "select_copy": [(1, 2)], "slice_copy": [(1, 1, 4, 2), (0,)],
    "squeeze_copy": [(), (0,), ((0, 1),)],
    "t_copy": [()], "transpose_copy": [(0, 1)], "unfold_copy": [(1, 2, 1)],
    "unsqueeze_copy": [(1,)], "view_copy": [((4, 3),)],
    "narrow_copy": [(1, 1, 2)],
    "split_copy": [(2, 1)], "split_with_sizes_copy": [((1, 3), 1)], "unbind_copy": [(), (1,)],
    "unsafe_split": [(2, 1)], "unsafe_split_with_sizes": [((1, 3), 1)], "unsafe_chunk": [(2, 1)],
}
for _name, _args in COPIES.items():
    @family(_name)
    def _(r, args=_args, name=_name):
        # these depend on the strides of their argument, which some tests change
        smooth = name not in ("as_strided_copy", "view_copy")
        return [call(x(r, 3, 4), *a).but(smooth=smooth) for a in args]


@family("view_as_real_copy")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_complex_copy")
def _(r):
    return [call(x(r, 3, 2)).but(smooth=False)]


class TestSamples(SampleTests):
    family = family
