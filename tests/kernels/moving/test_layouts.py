"""Layouts in memory: channels last, and copies that keep a layout."""
import numpy as np
import pytest

import flambeau
from flambeau.kernels.moving import layouts


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_channels_last(shape):
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    made = layouts.channels_last(x)
    np.testing.assert_array_equal(made, x)
    assert layouts.has_channels_last(made) and not layouts.has_channels_last(x)
    assert np.moveaxis(made, 1, -1).flags.c_contiguous
    assert tuple(s // 8 for s in made.strides) == tuple(layouts.channels_last_strides(shape))


def test_clones():
    x = layouts.channels_last(np.arange(24.0).reshape(1, 2, 3, 4))
    for memory_format, strides in [(None, (24, 1, 8, 2)), (flambeau.preserve_format, (24, 1, 8, 2)),
                                   (flambeau.contiguous_format, (24, 12, 4, 1)),
                                   (flambeau.channels_last, (24, 1, 8, 2)), ((1, 1, 2, 6), None)]:
        made = layouts.clone(x, memory_format)
        np.testing.assert_array_equal(made, x)
        assert not np.shares_memory(made, x)
        steps = tuple(s // 8 for s in made.strides)
        assert steps[1:] == (strides or memory_format)[1:]


def test_other_types():
    x = np.arange(6.0).reshape(2, 3).T
    made = layouts.to_copy(x, np.dtype(np.float32), None)
    assert made.dtype == np.float32 and made.strides == (4, 12)
    np.testing.assert_array_equal(made, x)
    assert layouts.to_copy(x, None, flambeau.contiguous_format).flags.c_contiguous
