"""Convolutions whose taps move."""
import pytest

import flambeau as torch
from flambeau._extensions import vision  # noqa: F401 - registers the ops

ops = torch.ops.torchvision


def small(*shape):
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def test_derivatives_of_deform_conv2d():
    torch.manual_seed(0)
    args = small(1, 2, 4, 4), small(2, 2, 2, 2), small(1, 8, 3, 3), small(1, 4, 3, 3), small(2)

    def function(*tensors):
        return ops.deform_conv2d(*tensors, 1, 1, 0, 0, 1, 1, 1, 1, True)
    assert torch.autograd.gradcheck(function, args)
    assert torch.autograd.gradgradcheck(function, args)


def test_without_offsets_deform_conv2d_is_a_convolution():
    torch.manual_seed(0)
    x, weight, bias = small(2, 4, 6, 7), small(6, 2, 3, 3), small(6)
    offset, mask = torch.zeros(2, 36, 3, 4).double(), torch.ones(2, 18, 3, 4).double()
    found = ops.deform_conv2d(x, weight, offset, mask, bias, 2, 2, 1, 1, 1, 1, 2, 2, True)
    expected = torch.nn.functional.conv2d(x, weight, bias, 2, 1, 1, 2)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(found)
    mine = ops._deform_conv2d_backward(grad, x, weight, offset, mask, bias,
                                       2, 2, 1, 1, 1, 1, 2, 2, True)
    for a, b in zip((mine[0], mine[1], mine[4]),
                    torch.autograd.grad(expected, (x, weight, bias), grad)):
        torch.testing.assert_close(a, b)


def test_a_tap_that_is_moved_reads_elsewhere():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    offset, none = torch.zeros(1, 2, 4, 4), torch.zeros(1, 0, 1, 1)

    def read(down, right):
        offset[:, 0], offset[:, 1] = down, right
        return ops.deform_conv2d(x, torch.ones(1, 1, 1, 1), offset, none, torch.zeros(1),
                                 1, 1, 0, 0, 1, 1, 1, 1, False)[0, 0]
    assert torch.equal(read(0, 0), x[0, 0])
    assert torch.equal(read(1, 0)[:3], x[0, 0, 1:]) and not read(1, 0)[3].any()
    torch.testing.assert_close(read(0.25, 0.5)[:3, :3], x[0, 0, :3, :3] + 1.5)
    assert not read(9, 9).any()


@pytest.mark.parametrize("change, message", [
    ({"weight": torch.zeros(1, 1, 1)}, "weight has 3 dimensions"),
    ({"offset": torch.zeros(1, 3, 4, 4)}, "is not valid: got: 3 expected: 2"),
    ({"offset": torch.zeros(1, 2, 3, 4)}, r"offset output dims: \(3, 4\)"),
    ({"weight": torch.zeros(1, 1, 9, 9), "offset": torch.zeros(1, 162, 0, 0)}, "output")])
def test_sizes_that_do_not_fit(change, message):
    given = {"x": torch.zeros(1, 1, 4, 4), "weight": torch.zeros(1, 1, 1, 1),
             "offset": torch.zeros(1, 2, 4, 4), "mask": torch.zeros(1, 0, 1, 1)} | change
    with pytest.raises(RuntimeError, match=message):
        ops.deform_conv2d(*given.values(), torch.zeros(1), 1, 1, 0, 0, 1, 1, 1, 1, False)
