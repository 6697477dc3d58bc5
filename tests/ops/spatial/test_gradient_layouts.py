"""How gradients of images lie in memory: as the input of some ops, as the gradient of the result of
others."""
import pytest

import flambeau
import flambeau.nn.functional as F

weight = flambeau.ones(4, 4, 3, 3)
AS_INPUT = {
    "conv2d": lambda x: F.conv2d(x, weight),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, weight),
    "depthwise": lambda x: F.conv2d(x, weight[:, :1], groups=4),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "batch_norm of given statistics": lambda x: F.batch_norm(
        x, flambeau.zeros(4), flambeau.ones(4)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
    "interpolate of the area": lambda x: F.interpolate(x, scale_factor=2, mode="area"),
}
AS_GRADIENT = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "nearest-exact": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "antialias": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", antialias=True),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
}
ROWS = {
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(x, 2, 2),
    "circular": lambda x: F.pad(x, (1, 1, 1, 1), "circular"),
}


def gradient(op, image_last, gradient_last):
    x = flambeau.arange(2 * 4 * 4 * 6.0).reshape(2, 4, 4, 6).sin()
    if image_last:
        x = x.contiguous(memory_format=flambeau.channels_last)
    x.requires_grad_()
    flambeau.manual_seed(0)
    y = op(x)
    given = flambeau.arange(float(y.numel())).reshape(y.shape).cos()
    if gradient_last:
        given = given.contiguous(memory_format=flambeau.channels_last)
    found, = flambeau.autograd.grad(y, x, given)
    return found


@pytest.mark.parametrize("gradient_last", [False, True])
@pytest.mark.parametrize("image_last", [False, True])
@pytest.mark.parametrize("name", [*AS_INPUT, *AS_GRADIENT, *ROWS])
def test_channels_of_gradients_lie_where_those_of_the_tensors_do(name, image_last, gradient_last):
    op = {**AS_INPUT, **AS_GRADIENT, **ROWS}[name]
    last = image_last if name in AS_INPUT else gradient_last if name in AS_GRADIENT else False
    found = gradient(op, image_last, gradient_last)
    assert found.stride() == ((96, 1, 24, 4) if last else (96, 24, 6, 1))
    flambeau.testing.assert_close(found, gradient(op, False, False), check_stride=False)


@pytest.mark.parametrize("image_last", [False, True])
@pytest.mark.parametrize("weight_last", [False, True])
def test_gradients_of_a_convolution_lie_as_the_image_or_the_weight_does(image_last, weight_last):
    last = {"memory_format": flambeau.channels_last}
    x, w = flambeau.ones(2, 3, 5, 5), flambeau.ones(4, 3, 2, 2)
    x = (x.contiguous(**last) if image_last else x).requires_grad_()
    w = (w.contiguous(**last) if weight_last else w).requires_grad_()
    for found in flambeau.autograd.grad(F.conv2d(x, w).sum(), (x, w)):
        assert found.is_contiguous(**last) is (image_last or weight_last)
