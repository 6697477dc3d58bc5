"""Products in half precision: rounded as often as torch rounds, no more; and what is refused."""
import re

import numpy as np
import pytest
from matrices import both, of_square, products
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

HALF = (flambeau.float16, flambeau.bfloat16)


def drawn(dtype, *shapes):
    flambeau.manual_seed(0)
    return [flambeau.randn(shape).to(dtype) for shape in shapes]


def exact(*tensors):
    return [t.double() for t in tensors]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("beta, alpha", [(1, 1), (0.6, 0.2), (0, 2)])
def test_sums_with_a_product_are_rounded_once(dtype, beta, alpha):
    c, a, b = drawn(dtype, (5, 7), (5, 6), (6, 7))
    x, y, z = exact(c, a, b)
    assert flambeau.addmm(c, a, b, beta=beta, alpha=alpha).equal(
        (beta * x + alpha * (y @ z)).to(dtype))
    c, a, b = drawn(dtype, (3, 5, 7), (3, 5, 6), (3, 6, 7))
    x, y, z = exact(c, a, b)
    assert flambeau.baddbmm(c, a, b, beta=beta, alpha=alpha).equal(
        (beta * x + alpha * (y @ z)).to(dtype))


@pytest.mark.parametrize("dtype", HALF)
def test_sums_over_a_batch_are_rounded_after_each_matrix(dtype):
    c, a, b = drawn(dtype, (5, 7), (3, 5, 6), (3, 6, 7))
    expected = c
    for i in range(3):
        expected = flambeau.addmm(expected, a[i], b[i], alpha=0.5)
    assert flambeau.addbmm(c, a, b, alpha=0.5).equal(expected)


@pytest.mark.parametrize("dtype", HALF)
def test_numbers_before_vectors_have_their_type(dtype):
    c, a, b = drawn(dtype, (5,), (5, 6), (6,))
    p, q = flambeau.tensor([0.6, 0.2]).to(dtype)
    expected = ((p * c).double() + q.double() * (a.double() @ b.double())).to(dtype)
    assert flambeau.addmv(c, a, b, beta=0.6, alpha=0.2).equal(expected)
    c, a, b = drawn(dtype, (5, 6), (5,), (6,))
    assert flambeau.addr(c, a, b, beta=0.6, alpha=0.2).equal(p * c + (q * a)[:, None] * b)


def test_addr_of_truth_values():
    c, a, b = (flambeau.tensor(v) for v in ([[True, False]], [False], [True, True]))
    assert flambeau.addr(c, a, b, beta=3, alpha=2).tolist() == [[True, False]]
    assert flambeau.addr(c, a, b, beta=0).tolist() == [[False, False]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("high", [7, 2 ** 27])
def test_products_of_many_integers_are_exact(dtype, high):
    rng, info = np.random.RandomState(0), np.iinfo(dtype)
    a, b = (rng.randint(max(-high, info.min), min(high, info.max), shape).astype(dtype)
            for shape in ((60, 50), (50, 40)))
    exact = a.astype(object) @ b.astype(object)
    wanted = ((exact - info.min) % 2 ** info.bits + info.min).astype(dtype)
    assert flambeau.equal(flambeau.tensor(a) @ flambeau.tensor(b), flambeau.tensor(wanted))


def test_integers_wrap_around():
    a = flambeau.full((1, 2), 100, dtype=flambeau.uint8)
    assert flambeau.mm(a, a.T).item() == 20000 % 256
    assert flambeau.addmm(a[:, :1], a, a.T, beta=2.5, alpha=3).item() == (200 + 60000) % 256


def ones(*shape, dtype=flambeau.float32):
    return flambeau.ones(shape, dtype=dtype)


double, long, truth = flambeau.float64, flambeau.int64, flambeau.bool
REFUSED = [
    (flambeau.mm, (ones(2), ones(2, 2)), "self must be a matrix"),
    (flambeau.mm, (ones(2, 2), ones(2, 2, dtype=long)),
     "expected m1 and m2 to have the same dtype, but got: float != long int"),
    (flambeau.mm, (ones(2, 2, dtype=truth),) * 2, '"addmm_impl_cpu_" not implemented for \'Bool\''),
    (flambeau.bmm, (ones(1, 2, 2), ones(1, 2, 2, dtype=double)),
     "expected scalar type Float but found Double"),
    (flambeau.mv, (ones(2), ones(2, 2)), "vector + matrix @ vector expected, got 1, 1, 2"),
    (flambeau.mv, (ones(2, 2), ones(2, dtype=double)),
     "addmv input tensors must have the same dtype, but got Double, Float, and Double"),
    (flambeau.dot, (ones(1), ones(3, dtype=double)), "dot : expected both vectors to have same"),
    (flambeau.addmm, (ones(2, 2), ones(3, 3, 3), ones(2, 2)), "mat1 must be a matrix, got 3-D"),
    (flambeau.addmm, (ones(3), ones(2, 2), ones(2, 2)),
     "The expanded size of the tensor (2) must match the existing size (3) at non-singleton "
     "dimension 1"),
    (flambeau.addmm, (ones(2, 2, dtype=double), ones(2, 2), ones(2, 2)),
     "self and mat2 must have the same dtype, but got Double and Float"),
    (flambeau.addmm, (ones(2, 2), ones(2, 2, dtype=double), ones(2, 2)),
     "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (flambeau.addmv, (ones(2, dtype=double), ones(2, 2), ones(2)),
     "addmv input tensors must have the same dtype, but got Double, Float, and Float"),
    (flambeau.matmul, (ones(2, 3, 4), ones(3)), "size mismatch, got input (6), mat (6x4), vec (3)"),
    (flambeau.einsum, ("ij,jk", ones(2, 3), ones(4, 5)),
     "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen "
     "size 3"),
    (flambeau.baddbmm, (ones(1, 2, 2, dtype=double), ones(1, 2, 2), ones(1, 2, 2)),
     "Input dtypes must be the same, got: input double, batch1: float, batch2: float"),
]


@pytest.mark.parametrize("function, given, message", REFUSED)
def test_refused(function, given, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        function(*given)


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_addr_of_integers_takes_integers(value):
    a = ones(2, dtype=long)
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        flambeau.addr(ones(2, 2, dtype=long), a, a, beta=value)


def test_contracting_over_broadcast_dimensions_keeps_the_type():
    a, b = ones(1, 1, dtype=flambeau.uint8), ones(2, 1, dtype=flambeau.uint8)
    assert flambeau.tensordot(a, b, dims=([0], [0])).dtype is flambeau.uint8


@pytest.mark.parametrize("function", [flambeau.mm, flambeau.matmul, flambeau.linalg.solve])
def test_out_has_the_type_of_the_product(function):
    message = "Expected out tensor to have dtype float, but got double instead"
    with pytest.raises(RuntimeError, match=message):
        function(flambeau.eye(2), ones(2, 2), out=ones(2, 2, dtype=double))


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

of_square(family, "adjoint", "linalg.diagonal")
products(family, (3,), (4,))("outer", "ger")
products(family, (2, 1, 3), (4, 3))("linalg.vecdot")
products(family, (2, 1, 3), (1, 4, 3))("linalg.cross")
products(family, (2, 3), (3, 4), (4, 2))("chain_matmul")


@family("tensordot")
def _(r):
    return both(r, (2, 3, 4), (3, 4, 5), dims=2) + both(
        r, (2, 3, 4), (4, 2, 5), dims=([0, 2], [1, 0])) + both(
        r, (2,), (3,), dims=0) + [
        call(r.real(2, 3), r.real(1, 2), dims=([1], [0]))]


@family("linalg.multi_dot")
def _(r):
    return [call([r.real(2, 3), r.real(3, 4), r.real(4, 2)]),
            call([r.real(3), r.real(3, 4), r.real(4)]),
            call([r.complex(10, 2), r.complex(2, 20), r.complex(20, 3), r.complex(3)])]


@family("kron")
def _(r):
    return both(r, (2, 3), (4, 5)) + both(r, (3,), (2, 2)) + [call(r.real(), r.real(2))]


@family("inner")
def _(r):
    return both(r, (2, 3), (4, 3)) + both(r, (), (4, 3)) + both(r, (3,), (3,))


@family("cross")
def _(r):
    return both(r, (2, 3), (2, 3)) + both(r, (3, 2), (3, 2), dim=0) + both(r, (3, 3), (3, 1))


class TestSamples(SampleTests):
    family = family


def test_a_product_over_no_dimensions_is_a_view_of_a_matrix():
    x = flambeau.ones(3)
    product = flambeau.tensordot(x, x, 0)
    assert product.shape == (3, 3) and product._base is not None
    assert flambeau.tensordot(x > 0, x < 0, 0).dtype is flambeau.bool
