"""Samples of the ops of `flambeau/ops/linalg/matmul.py`."""
import numpy as np
import pytest
from layer_tests import LayerTests
from layers import Cases
from matrices import both, products
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau import nn

family = Samples()


@family("matmul")
def _(r):
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)),
              ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 3, 2), (2,)), ((3,), (2, 3, 2))]
    return [c for s in shapes for c in both(r, *s, draw="real")]


@family("nn.functional.linear")
def _(r):
    return [call(r.real(2, 3), r.real(4, 3)), call(r.real(2, 3), r.real(4, 3), r.real(4)),
            call(r.real(2, 2, 3), r.real(4, 3), r.real(4)),
            call(r.real(3), r.real(4, 3), r.real(4)),
            call(r.complex(2, 3), r.complex(4, 3), r.complex(4))]


products(family, (3,), (3,))("vdot")
products(family, (2, 3), (3, 4))("linalg.matmul")


class TestSamples(SampleTests):
    family = family


# ---- layers -------------------------------------------------------------------------------------

cases = Cases()
simple = cases.simple
simple("linear", lambda t, F, x, w, b: F.linear(x, w, b), (2, 3), (4, 3), (4,))
simple("linear_3d", lambda t, F, x, w: F.linear(x, w), (2, 2, 3), (4, 3))


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("shape, node", [((5,), "DotBackward0"), ((2, 5), "MvBackward0"),
                                         ((3, 2, 5), "AddmmBackward0")])
def test_a_layer_whose_weight_is_one_row(shape, node):
    x = flambeau.rand(shape, dtype=flambeau.float64, requires_grad=True)
    w = flambeau.rand(5, dtype=flambeau.float64, requires_grad=True)
    y = flambeau.nn.functional.linear(x, w)
    assert flambeau.allclose(y, (x * w).sum(-1)) and type(y.grad_fn).__name__ == node
    assert flambeau.autograd.gradgradcheck(flambeau.nn.functional.linear, (x, w))
    assert flambeau.autograd.gradcheck(flambeau.nn.functional.linear, (x, w), check_forward_ad=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("by_rows", [True, False])
def test_integers_wrap_and_no_term_is_lost(dtype, by_rows):
    """At all lengths that a loop over vectors may treat in another way."""
    rng = np.random.default_rng(0)
    for k in range(40):
        a = rng.integers(0, 256, (3, k)).astype(dtype)
        b = rng.integers(0, 256, k).astype(dtype)
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
        x, y = flambeau.tensor(a if by_rows else np.asfortranarray(a)), flambeau.tensor(b)
        assert (x @ y).tolist() == expected.tolist()
        assert flambeau.addmv(y.new_zeros(3), x, y).tolist() \
            == expected.tolist()
        assert flambeau.dot(x[0], y).item() == expected[0]


def test_a_bias_of_another_type_is_added_after_the_product_of_what_has_no_rows():
    x, weight = flambeau.rand(2, 3, 4).transpose(0, 1), flambeau.rand(5, 4)
    bias = flambeau.rand(5).half()
    found = flambeau.nn.functional.linear(x, weight, bias)
    assert found.dtype is flambeau.float32
    assert found.allclose(x @ weight.T + bias.float())
    with pytest.raises(RuntimeError, match="must have the same dtype, but got Half and Float"):
        flambeau.nn.functional.linear(x.contiguous(), weight, bias)


def _by_columns(*shape):
    return flambeau.randn(*shape[::-1], dtype=flambeau.float64).t().requires_grad_()


@pytest.mark.parametrize("bias", [False, True])
def test_the_gradients_of_linear_lie_as_its_factors(bias):
    x, w = _by_columns(4, 5), _by_columns(3, 5)
    b = flambeau.randn(3, dtype=flambeau.float64, requires_grad=True) if bias else None
    weights = flambeau.randn(4, 3, dtype=flambeau.float64)
    y = flambeau.nn.functional.linear(x, w, b)
    by_x, by_w = flambeau.autograd.grad(y, [x, w], weights)
    assert by_x.stride() == (1, 4) and by_w.stride() == (1, 3)
    flambeau.testing.assert_close(by_x, weights @ w.detach())
    flambeau.testing.assert_close(by_w, weights.t() @ x.detach())
    rows = x.detach().contiguous().requires_grad_()
    y = flambeau.nn.functional.linear(rows, w.detach().contiguous(), b)
    assert flambeau.autograd.grad(y, rows, weights)[0].stride() == (5, 1)
    assert flambeau.autograd.gradgradcheck(
        flambeau.nn.functional.linear, (x, w, b) if bias else (x, w))


def test_empty_batches_of_two_types():
    """Where nothing is multiplied the types need not agree: the second one is the result's."""
    for m, k, n in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        found = flambeau.ones(2, m, k) @ flambeau.ones(2, k, n, dtype=flambeau.float64)
        assert found.dtype is flambeau.float64 and flambeau.equal(
            found, flambeau.zeros(2, m, n, dtype=flambeau.float64))
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        flambeau.ones(2, 1, 1) @ flambeau.ones(2, 1, 1, dtype=flambeau.float64)


@pytest.mark.parametrize("input, bias, message", [
    ((3,), (2, 4), r"output with shape \[4\] doesn't match the broadcast shape \[2, 4\]"),
    ((3,), (5,), r"The expanded size of the tensor \(4\) .* Target sizes: \[1, 4\]"),
    ((2, 2, 3), (2, 1, 5), r"The size of tensor a \(4\) must match the size of tensor b \(5\)"),
    ((2, 2, 3), (3, 4), "The size of tensor a"), ((2, 2, 3), (2, 1), "The expanded size"),
    ((2, 3), (2, 2, 4), r"expand\(torch.FloatTensor")])
def test_a_bias_expands_within_the_product_or_in_place_behind(input, bias, message):
    with pytest.raises(RuntimeError, match=message):
        nn.functional.linear(flambeau.ones(input), flambeau.ones(4, 3), flambeau.ones(bias))


@pytest.mark.parametrize("input, bias", [((3,), (1, 4)), ((2, 2, 3), (2, 4)), ((2, 2, 3), (4, 1)),
                                         ((2, 2, 3), ())])
def test_a_bias_of_several_rows_does_not_change_the_shape(input, bias):
    x, w, b = flambeau.ones(input), flambeau.ones(4, 3), flambeau.ones(bias)
    assert flambeau.equal(nn.functional.linear(x, w, b), flambeau.full((*input[:-1], 4), 4.0))


def test_what_has_no_dimensions_has_no_rows():
    for product in (lambda x: flambeau.mv(x, flambeau.ones(3)),
                 lambda x: flambeau.addmv(x, flambeau.ones(5, 3), flambeau.ones(2))):
        with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dim"):
            product(flambeau.ones(()))
