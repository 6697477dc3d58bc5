"""Samples of views as copies, scattered writes, and functions of the tensor's form."""
import numpy as np
from samples import Samples, call

family = Samples()


def x(r, *shape):
    return np.asarray(r.rng.randn(*shape))


COPIES = {
    "alias_copy": [()], "as_strided_copy": [((2, 2), (1, 2), 1)], "detach_copy": [()],
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
family.untested["detach_copy"] = "no derivative by design"
del family["detach_copy"]
family.untested["view_copy.dtype"] = "gives other numbers; see test_reinterpret.py"
for _name in ("to", "to.dtype", "to.other"):
    family.untested[_name] = "gives other types; see test_conversion.py"
family.untested["slice"] = "the view that slice_copy copies"


@family("view_as_real_copy")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_complex_copy")
def _(r):
    return [call(x(r, 3, 2)).but(smooth=False)]


@family("select_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3), 1, 2), call(x(r, 3, 4), x(r, 4), -2, -1)]


@family("slice_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3, 2), 1, 1, 4, 2), call(x(r, 3, 4), x(r, 2, 4), start=1)]


@family("diagonal_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3)), call(x(r, 2, 3, 4), x(r, 3, 2), -1, 2, 0)]


@family("range")
def _(r):
    return [call(1, 4), call(0.5, 2, 0.25), call(3, -1, -2)]


for _name in ("svd_lowrank", "pca_lowrank", "lobpcg"):
    family.untested[_name] = "random; see test_linalg.py"
