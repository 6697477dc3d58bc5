"""The affine map: layouts of its gradients, and where its bias is added."""
import pytest

import flambeau
from flambeau import nn


def _by_columns(*shape):
    return flambeau.randn(*shape[::-1], dtype=flambeau.float64).t().requires_grad_()


@pytest.mark.parametrize("shape, node", [((5,), "DotBackward0"), ((2, 5), "MvBackward0"),
                                         ((3, 2, 5), "AddmmBackward0")])
def test_a_layer_whose_weight_is_one_row(shape, node):
    x = flambeau.rand(shape, dtype=flambeau.float64, requires_grad=True)
    w = flambeau.rand(5, dtype=flambeau.float64, requires_grad=True)
    y = flambeau.nn.functional.linear(x, w)
    assert flambeau.allclose(y, (x * w).sum(-1)) and type(y.grad_fn).__name__ == node
    assert flambeau.autograd.gradgradcheck(flambeau.nn.functional.linear, (x, w))
    assert flambeau.autograd.gradcheck(flambeau.nn.functional.linear, (x, w), check_forward_ad=True)


def test_a_bias_of_another_type_is_added_after_the_product_of_what_has_no_rows():
    x, weight = flambeau.rand(2, 3, 4).transpose(0, 1), flambeau.rand(5, 4)
    bias = flambeau.rand(5).half()
    found = flambeau.nn.functional.linear(x, weight, bias)
    assert found.dtype is flambeau.float32
    assert found.allclose(x @ weight.T + bias.float())
    with pytest.raises(RuntimeError, match="must have the same dtype, but got Half and Float"):
        flambeau.nn.functional.linear(x.contiguous(), weight, bias)


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
