"""Samples of views, copies, indexing, gathering and joining."""
import numpy as np
from samples import Samples, call

family = Samples()

# ---- views and shapes ---------------------------------------------------------------------------

for _name, _args in {
    "reshape": [(((3, 2)),), ((-1,),)],
    "Tensor.view": [(3, 2), (-1,)],
    "permute": [((1, 0),)],
    "transpose": [(0, 1)],
    "t": [()],
    "movedim": [(0, 1), ((0, 1), (1, 0))],
    "unsqueeze": [(0,), (-1,)],
    "squeeze": [(), (0,)],
    "Tensor.expand": [(4, 2, 3), (2, 3)],
    "broadcast_to": [((4, 2, 3),)],
    "select": [(0, 1), (1, -1)],
    "flatten": [(), (0, 1)],
    "unflatten": [(1, (3, 1))],
    "ravel": [()],
    "Tensor.repeat": [(2, 1), (2, 1, 3)],
    "tile": [((2,),), ((1, 2, 2),)],
    "repeat_interleave": [(2,), (2, 1)],
    "flip": [((0,),), ((0, 1),)],
    "fliplr": [()],
    "flipud": [()],
    "roll": [(1,), ((1, -1), (0, 1))],
    "rot90": [(), (2, (0, 1)), (-1,)],
    "diagonal": [(), (1,)],
    "diag": [(), (1,)],
    "diag_embed": [(), (1,)],
    "diagflat": [()],
    "tril": [(), (1,)],
    "triu": [(), (-1,)],
    "Tensor.unfold": [(1, 2, 1), (0, 2, 1)],
    "narrow": [(1, 1, 2), (1, np.array(1), 2)],
    "as_strided": [((2, 2), (1, 2)), ((3,), (1,), 1)],
    "Tensor.sum_to_size": [(1, 3), (3,)],
    "chunk": [(2,), (2, 1)],
    "split": [(1,), ([1, 2], 1)],
    "split_with_sizes": [([1, 2], 1)],
    "tensor_split": [(2,), ((1, 2), 1)],
    "unbind": [(), (1,)],
    "hsplit": [(3,)],
    "vsplit": [(2,)],
    "clone": [()],
    "Tensor.contiguous": [()],
    "conj": [()],
    "resolve_conj": [()],
    "resolve_neg": [()],
    "atleast_1d": [()],
    "atleast_2d": [()],
    "atleast_3d": [()],
    "detach": [()],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


@family("dsplit")
def _(r):
    return [call(r.real(1, 2, 4), 2)]


@family("real")
def _(r):
    return [call(r.complex(2, 3)), call(r.real(3))]


@family("imag")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_real")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_complex")
def _(r):
    return [call(r.real(3, 2))]


for _name in ("Tensor.view_as", "Tensor.reshape_as"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 3), r.real(3, 2)).but(constant=(1,))]


@family("Tensor.expand_as")
def _(r):
    return [call(r.real(3), r.real(2, 3)).but(constant=(1,))]


@family("as_strided_scatter")
def _(r):
    # PyTorch's gradient by the first argument is the complement of what it should be
    return [call(r.real(2, 3), r.real(2, 2), (2, 2), (1, 2)).but(constant=(0,))]


@family("broadcast_tensors")
def _(r):
    return [call(r.real(2, 1), r.real(3))]


# ---- joining ------------------------------------------------------------------------------------

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


# ---- gathering and scattering -------------------------------------------------------------------

INDEX = np.array([[0, 2, 1], [1, 1, 0]])


@family("gather")
def _(r):
    return [call(r.real(2, 3), 1, INDEX), call(r.real(3, 3), 0, INDEX),
            call(r.real(), 0, np.zeros((), int))]


@family("scatter_add")
def _(r):
    return [call(r.real(2, 3), 1, INDEX, r.real(2, 3)), call(r.real(3, 3), 0, INDEX, r.real(2, 3))]


@family("scatter")
def _(r):
    index = np.array([[0, 2, 1], [1, 0, 2]])
    return [call(r.real(2, 3), 1, index, r.real(2, 3)), call(r.real(2, 3), 1, INDEX, 1.5)]


@family("scatter_reduce")
def _(r):
    return [call(r.distinct(2, 3), 1, INDEX, r.distinct(2, 3) + 0.17, way, include_self=own)
            for way in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)]


@family("index_select")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0, 2])), call(r.real(3), 0, np.array([1]))]


@family("index_add")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0, 2]), r.real(2, 3)),
            call(r.real(3, 2), 0, np.array([1]), r.real(1, 2), alpha=2.0)]


@family("index_copy")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0]), r.real(2, 2))]


@family("index_fill")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0]), 1.5),
            call(r.real(2, 3), 1, np.array([2, 0]), r.real())]


@family("index_reduce")
def _(r):
    return [call(r.positive(2, 3), 1, np.array([2, 0]), r.positive(2, 2), way)
            for way in ("prod", "mean", "amax", "amin")]


@family("take")
def _(r):
    return [call(r.real(2, 3), np.array([[0, 5], [5, 2]]))]


@family("take_along_dim")
def _(r):
    return [call(r.real(2, 3), INDEX, 1), call(r.real(2, 3), np.array([1, 4]))]


@family("Tensor.put")
def _(r):
    return [call(r.real(2, 3), np.array([0, 5]), r.real(2)),
            call(r.real(2, 3), np.array([0, 0]), r.real(2), True)]


@family("masked_select")
def _(r):
    return [call(r.real(2, 3), np.array([[True, False, True], [False, True, False]]))]


@family("Tensor.masked_scatter")
def _(r):
    return [call(r.real(2, 3), np.array([True, False, True]), r.real(4))]


@family("index_put")
def _(r):
    where = (np.array([0, 1]), np.array([2, 0]))
    return [call(r.real(2, 3), where, r.real(2)), call(r.real(2, 3), where[:1], r.real(2, 3), True)]


@family("Tensor.__getitem__")
def _(r):
    x, y = r.real(2, 3, 4), np.array([1, 0, 1])
    return [call(x, 0), call(x, slice(1, 2)), call(x, (Ellipsis, 1)), call(x, None), call(x, y),
            call(x, (slice(None), y)), call(x, (y, y)), call(x, (0, slice(None), y)),
            call(x, (y, slice(None), np.array([[0], [1]]))), call(x, r.bools(2, 3)),
            call(x, (slice(None), slice(None, None, 2), -1))]


# what a window shows depends on how slices lie in memory: tests/func/test_layouts.py
family.unbatched = ("masked_select", "Tensor.__getitem__", "combinations", "as_strided")
# what they give, or whether they can, depends on the strides of their argument
family.contiguous = ("Tensor.view", "Tensor.view_as", "as_strided", "view_as_complex",
                     "as_strided_scatter")
family.untested |= dict.fromkeys(
    ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "eye",
     "empty_strided", "empty_permuted", "scalar_tensor", "tensor", "as_tensor", "asarray",
     "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like",
     "from_numpy", "from_dlpack", "frombuffer", "new_zeros", "new_ones", "new_empty", "new_full",
     "new_empty_strided", "arange", "linspace", "logspace", "tril_indices",
     "triu_indices", "is_conj", "is_neg", "alias", "copy", "view"),
    "makes or asks; nothing to differentiate by samples")
family.untested |= dict.fromkeys(
    ("with_strides", "graph_alias", "replaced", "zero", "basic_alias", "put_at_", "take_at",
     "index", "index_put_many", "select_first"),
    "inner parts of indexing and views; reached under vmap")
family.untested |= dict.fromkeys(
    ("atleast_1d.Sequence", "atleast_2d.Sequence", "atleast_3d.Sequence"), "the same for each")
family.untested |= dict.fromkeys(
    ("_neg_view", "conj_view", "negative_view"), "see test_conjugate_views.py")
family.untested |= dict.fromkeys(
    ("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"), "see tensor_calls.txt")
family.untested["_assert_async"] = family.untested["_assert_async.msg"] = "gives nothing"
for _name in ("float_power_", "float_power_.Scalar"):
    family.untested[_name] = "writes, to float64 only; see test_coercion.py"
for _name in ("special_softmax", "special_log_softmax"):
    family.untested[_name] = "softmax under another name; see test_coercion.py"
family.untested["_dirichlet_grad"] = "a derivative of draws; see test_random.py"
