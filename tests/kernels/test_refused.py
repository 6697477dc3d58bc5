"""What kernels do not take, in PyTorch's words."""
import numpy as np
import pytest

import flambeau
from flambeau.kernels import refused


def test_kinds_of_types():
    assert refused.characters("be") == "?eE"
    with pytest.raises(NotImplementedError, match="\"foo_cpu\" not implemented for 'Bool'"):
        refused.refuse(np.ones(2, bool), "b", "foo_cpu")
    refused.refuse(np.ones(2), "bBil", "foo_cpu")


def test_sentences():
    with pytest.raises(RuntimeError, match="no roots of Long, please"):
        refused.refuse(np.ones(2, np.int64), "l", "no roots of {}, please")


class Op:
    variadic = False

    def __init__(self, *refuses):
        self.refuses = refuses

    @staticmethod
    def kernel(x, *rest):
        return x + 1


def test_kernels_with_what_they_refuse():
    op = Op()
    assert refused.kernel_of(op) is op.kernel
    kernel = refused.kernel_of(Op("foo_cpu", "b"))
    assert kernel(np.zeros(2)).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="foo_cpu"):
        kernel(np.zeros(2, bool))
    assert kernel(np.zeros(0, bool)).size == 0          # a kernel that has nothing to do


def test_a_single_element():
    name = refused.unless_one("foo_cpu")
    assert name(np.ones(2)) == "foo_cpu" and name(np.float64(1)) == ""


FLOAT8 = [flambeau.float8_e4m3fn, flambeau.float8_e5m2, flambeau.float8_e4m3fnuz,
          flambeau.float8_e5m2fnuz]


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("one", [2.0, "0-d", "one element"])
def test_float8_by_a_single_number_asks_another_kernel(dtype, one):
    x = flambeau.ones(2, 2).to(dtype)
    by = x[0, 0] if one == "0-d" else x[:1, :1] if one == "one element" else one
    for call, name in ((lambda: x * by, "mul_cpu"), (lambda: x / by, "div_cpu"),
                       (lambda: flambeau.div(x, by, rounding_mode="trunc"), "div_trunc_cpu"),
                       (lambda: x // by, "div_floor_cpu")):
        with pytest.raises(NotImplementedError, match=f'"{name}_reduced_float" not implemented'):
            call()
    assert (x * x).dtype is dtype


@pytest.mark.parametrize("dtype", FLOAT8)
def test_a_scan_of_a_single_number_asks_no_kernel(dtype):
    x = flambeau.tensor(1.5).to(dtype)
    for scan in (flambeau.cumsum, flambeau.cumprod):
        assert scan(x, 0).float().item() == 1.5 and scan(x, 0).dtype is dtype
        with pytest.raises(NotImplementedError, match=f"{scan.__name__}_out_cpu"):
            scan(x[None], 0)
        assert scan(x[None], 0, dtype=flambeau.float32).tolist() == [1.5]


SHORT, MATRIX = flambeau.ones(4), flambeau.ones(3, 3)
SPEAKERS = {                    # what is asked first, and what it is called
    "triu": lambda t: flambeau.triu(MATRIX.to(t)),
    "tril": lambda t: flambeau.lu_unpack(MATRIX.to(t), flambeau.ones(3, dtype=flambeau.int32)),
    "scatter_gather_scalar_cpu": lambda t: flambeau.lu_unpack(
        MATRIX.to(t), flambeau.ones(3, dtype=flambeau.int32), unpack_data=False),
    "bernoulli_tensor_cpu_self_": lambda t: flambeau.bernoulli(MATRIX.to(t)),
    "index_reduce_func_exclude_input_init": lambda t: MATRIX.to(t).index_reduce(
        0, flambeau.tensor([0]), MATRIX[:1].to(t), "amax", include_self=False),
    "nonzero_count_cpu": lambda t: MATRIX.to(t).to_sparse(),
    "min_all": lambda t: flambeau.normal(0.0, SHORT.to(t)),
    "softmax_lastdim_kernel_impl": lambda t: flambeau.ops.aten._safe_softmax(SHORT.to(t), 0),
    "compute_columns3d": lambda t: flambeau.nn.functional.conv3d(
        flambeau.ones(1, 1, 2, 2, 2).to(t), flambeau.ones(1, 1, 2, 2, 2).to(t)),
    "slow_conv3d_cpu": lambda t: flambeau.nn.functional.conv3d(
        flambeau.ones(1, 1, 2, 2, 2).to(t), flambeau.ones(1, 1, 1, 1, 1).to(t)),
    "glu_cpu": lambda t: flambeau.nn.functional.glu(flambeau.ones(0, 4).to(t)),
    "_segment_reduce_cpu": lambda t: flambeau.segment_reduce(
        SHORT.to(t), "sum", lengths=flambeau.tensor([2, 2])),
}


@pytest.mark.parametrize("dtype", [flambeau.uint16, *FLOAT8[:2]])
@pytest.mark.parametrize("name", SPEAKERS)
def test_the_kernel_that_is_asked_first_is_named(name, dtype):
    with pytest.raises(NotImplementedError, match=f'^"{name}" not implemented for'):
        SPEAKERS[name](dtype)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_the_spread_of_all_elements_is_another_kernel_than_that_of_rows(dtype):
    x = MATRIX.to(dtype)
    for call in (flambeau.std, flambeau.var):
        for dim in (None, (), (0, 1)):
            with pytest.raises(RuntimeError, match="std_var_all: Unsupported dtype Float8"):
                call(x, dim)
        with pytest.raises(NotImplementedError, match='"std_cpu" not implemented'):
            call(x, 1)
        assert call(x[:0]).isnan().item() and call(x[:0]).dtype is dtype


@pytest.mark.parametrize("n,name", [(3, "bmm"), (30, "addmm_impl_cpu_")])
def test_products_of_small_and_of_large_matrices_have_kernels_of_their_own(n, name):
    x = flambeau.ones(2, n, n, dtype=flambeau.bool)
    with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for \'Bool\''):
        flambeau.bmm(x, x)


def test_few_values_are_compared_and_many_are_sorted():
    few, many = (flambeau.ones(n, dtype=flambeau.uint16) for n in (4, 40))
    with pytest.raises(NotImplementedError, match="isin_default_cpu"):
        flambeau.isin(few, few)
    assert flambeau.isin(many, many).all() and flambeau.isin(few, 1).all()
