"""What the writer makes of values: arrays, grids of images, bins."""
import numpy as np
import pytest

import flambeau
from flambeau.utils.tensorboard import summary


@pytest.mark.parametrize("value", [flambeau.ones(2, requires_grad=True), [1.0, 1.0], np.ones(2),
                                   flambeau.ones(2, dtype=flambeau.bfloat16)])
def test_arrays(value):
    array = summary.as_array(value)
    assert isinstance(array, np.ndarray) and array.astype(float).tolist() == [1.0, 1.0]


def test_bins_grow_by_a_tenth_on_both_sides_of_0():
    bins = np.array(summary.default_bins())
    assert (np.diff(bins) > 0).all() and 0 in bins
    positive = bins[bins > 0]
    assert positive[0] == 1e-12 and np.allclose(positive[1:] / positive[:-1], 1.1)
    assert np.array_equal(-bins[bins < 0][::-1], positive)


def test_a_grid_of_images():
    images = np.arange(10 * 3 * 2 * 2).reshape(10, 3, 2, 2)
    made = summary.grid(images)
    assert made.shape == (3, 4, 16) and np.array_equal(made[:, :2, 2:4], images[1])
    assert np.array_equal(made[:, 2:, :2], images[8]) and not made[:, 2:, 4:].any()


@pytest.mark.parametrize("shape, formats", [
    ((3, 4, 5), "CHW"), ((4, 5, 3), "HWC"), ((4, 5), "HW"), ((1, 3, 4, 5), "NCHW"),
    ((1, 4, 5, 3), "NHWC")])
def test_formats_of_images(shape, formats):
    assert summary.to_hwc(np.zeros(shape), formats).shape == (4, 5, 3)


def test_wrong_formats():
    with pytest.raises((AssertionError, ValueError)):
        summary.to_hwc(np.zeros((3, 4, 5)), "NCHW")


def test_scalars_need_one_element():
    pytest.importorskip("tensorboard")
    assert summary.scalar("tag", flambeau.tensor([2.5])).value[0].simple_value == 2.5
    with pytest.raises((AssertionError, ValueError)):
        summary.scalar("tag", flambeau.ones(2))
