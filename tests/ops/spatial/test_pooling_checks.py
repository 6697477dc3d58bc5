"""What pooling requires of its arguments."""
import pytest

import flambeau as torch

F = torch.nn.functional
x = torch.rand(1, 2, 6, 6)


@pytest.mark.parametrize("call,said", [
    (lambda: F.max_pool2d(x, 0), "stride should not be zero"),
    (lambda: F.max_pool2d(x, 2, padding=2), "at most half of effective kernel size|half of"),
    (lambda: F.max_pool2d(x, 2, dilation=0), "dilation should be greater than zero"),
    (lambda: F.avg_pool2d(x, 2, padding=2), "at most half|half of"),
    (lambda: F.avg_pool2d(x, 9), "Output size is too small"),
    (lambda: F.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
    (lambda: F.max_pool2d(x[0, 0], 2), r"Expected 3D or 4D|non-empty 3D or 4D"),
    (lambda: F.max_pool2d(x, (2, 2, 2)), "single int, or a tuple of two ints"),
    (lambda: F.adaptive_avg_pool2d(x, (-1, 2)), "greater than or equal to 0")])
def test_refusals(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()


def test_one_number_stands_for_all_axes():
    assert torch.equal(F.max_pool2d(x, 2), F.max_pool2d(x, (2, 2), (2, 2), (0, 0), (1, 1)))
    assert F.avg_pool2d(x, 3, ceil_mode=True, stride=2).shape == (1, 2, 3, 3)


@pytest.mark.parametrize("call, name", [
    (lambda x: F.avg_pool2d(x, 2), "avg_pool2d"), (lambda x: F.max_pool2d(x, 2), "max_pool2d"),
    (lambda x: F.adaptive_avg_pool2d(x, 2), "adaptive_avg_pool2d"),
    (lambda x: F.adaptive_max_pool2d(x, 2), "adaptive_max_pool2d")])
def test_the_kernel_for_images_of_this_order_is_named(call, name):
    images = torch.ones(2, 3, 4, 4, dtype=torch.complex64)
    for given, kernel in ((images, name), (images.contiguous(
            memory_format=torch.channels_last), f"{name}_channels_last")):
        with pytest.raises(NotImplementedError) as caught:
            call(given)
        assert str(caught.value) == f"\"{kernel}\" not implemented for 'ComplexFloat'"


@pytest.mark.parametrize("shape, output_size, said", [
    ((0, 5, 7), 2, r"size\(1\) equals to input channel size"),
    ((1, 0, 5, 7), 2, "with dimension 1 being empty"),
    ((1, 4, 5, 7), 5, "pool height 2 too large"),
    ((1, 4, 5, 7), -2, "negative dimension -2")])
def test_samples_of_fractional_pooling_are_looked_at_last(shape, output_size, said):
    with pytest.raises(RuntimeError, match=said):
        F.fractional_max_pool2d(torch.ones(shape), 2, output_size,
                                _random_samples=torch.rand(1, 3, 2))
