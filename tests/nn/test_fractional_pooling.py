"""Fractional pooling against its definition, window by window."""
import math

import pytest

import flambeau
from flambeau.nn import functional as F


def starts(u, size, out, k):
    """Where the windows of one dimension begin, for a uniform u: Graham's pseudo-random steps."""
    if out == 1:
        return [size - k]
    alpha = (size - k) / (out - 1)
    return [math.floor((i + u) * alpha) - math.floor(u * alpha)
            for i in range(out - 1)] + [size - k]


@pytest.mark.parametrize("dims", [2, 3])
def test_windows(dims):
    size, out, k = (9, 7, 8)[:dims], (4, 1, 5)[:dims], (2, 3, 2)[:dims]
    flambeau.manual_seed(0)
    x = flambeau.randn(2, 3, *size, dtype=flambeau.float64)
    u = flambeau.rand(2, 3, dims, dtype=flambeau.float64)
    pool = getattr(F, f"fractional_max_pool{dims}d")
    x[1, 2][(3,) * dims] = math.nan
    found, where = pool(x, k, output_size=out, return_indices=True, _random_samples=u)
    for n in range(2):
        for c in range(3):
            order = range(dims) if dims == 3 else (1, 0)
            at = [starts(u[n, c, j].item(), *each) for j, *each in zip(order, size, out, k)]
            for place in flambeau.cartesian_prod(*[flambeau.arange(o) for o in out]).tolist():
                window = tuple(slice(at[a][i], at[a][i] + k[a]) for a, i in enumerate(place))
                wanted = x[n, c][window].max()
                assert flambeau.equal(found[n, c][tuple(place)].nan_to_num(99),
                                      wanted.nan_to_num(99))
                assert x[n, c].reshape(-1)[where[n, c][tuple(place)]].nan_to_num(99) \
                    == wanted.nan_to_num(99)


def test_wrong_numbers_of_sizes_are_refused():
    x, samples = flambeau.rand(2, 7, 7), flambeau.rand(1, 2, 2)
    for sizes in ((), (1,), (1, 1, 1)):
        with pytest.raises(RuntimeError, match="kernel_size must either be a single Int or tuple"):
            F.fractional_max_pool2d(x, sizes, (3, 3), _random_samples=samples)
        with pytest.raises(RuntimeError, match="output_size must either be a single Int or tuple"):
            F.fractional_max_pool2d(x, 2, sizes, _random_samples=samples)
    with pytest.raises(RuntimeError, match=r"three elements \(depth, height, width\) in"):
        F.max_unpool3d(flambeau.ones(1, 3, 1, 1, 1), flambeau.zeros(1, 3, 1, 1, 1).long(), [1, 1])


def test_no_windows_and_no_images_give_nothing():
    assert flambeau.nn.FractionalMaxPool2d([2, 2], output_size=[0, 1])(
        flambeau.rand(2, 3, 7, 7)).shape == (2, 3, 0, 1)
    assert flambeau.nn.FractionalMaxPool3d([3, 2, 2], output_size=[1, 1, 1])(
        flambeau.rand(0, 3, 7, 7, 7)).shape == (0, 3, 1, 1, 1)


@pytest.mark.parametrize("pool", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
def test_gradients_without_elements_are_refused(pool):
    x = flambeau.rand(1, 2, 4, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad_output to have non-zero size for non-bat"):
        pool(x, 0).sum().backward()


def test_layouts_of_pooled_volumes_and_averages():
    x = flambeau.rand(1, 6, 12, 13, 14).to(memory_format=flambeau.channels_last_3d)
    assert F.max_pool3d(x[0], (5, 6, 7)).stride() == (1, 24, 12, 6)
    image = flambeau.rand(2, 3, 6, 6).to(memory_format=flambeau.channels_last)
    assert F.adaptive_avg_pool2d(image, 1).stride() == (3, 1, 3, 3)
