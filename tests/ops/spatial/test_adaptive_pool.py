"""Layers that `flambeau/ops/spatial/adaptive_pool.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
import flambeau as torch
import flambeau.nn.functional as F

cases = Cases()
simple = cases.simple
simple("adaptive_avg_pool1d", lambda t, F, x: F.adaptive_avg_pool1d(x, 3), (2, 2, 7))
simple("adaptive_avg_pool2d", lambda t, F, x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 2, 5, 7))
simple("adaptive_avg_pool2d_one", lambda t, F, x: F.adaptive_avg_pool2d(x, 1), (2, 2, 5, 7))
simple("adaptive_avg_pool3d", lambda t, F, x: F.adaptive_avg_pool3d(x, (2, None, 1)),
       (1, 2, 3, 2, 3))
simple("adaptive_max_pool1d", lambda t, F, x: F.adaptive_max_pool1d(x, 3), (2, 2, 7), apart=True)
simple("adaptive_max_pool2d", lambda t, F, x: F.adaptive_max_pool2d(x, (2, 3)), (2, 2, 5, 7),
       apart=True)
simple("adaptive_max_pool3d", lambda t, F, x: F.adaptive_max_pool3d(x, 2), (1, 2, 3, 4, 3),
       apart=True)


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("name, said", [
    ("adaptive_avg_pool2d", "adaptive_avg_pool2d: output_size must be 2"),
    ("adaptive_max_pool2d", r"adaptive_max_pool2d\(\): internal error: output_size.size\(\) must"),
    ("adaptive_avg_pool3d", "adaptive_avg_pool3d: output_size must be 3")])
def test_as_many_sizes_as_dimensions_are_pooled(name, said):
    sizes = (2, 2) if name.endswith("3d") else (2, 2, 2)
    with pytest.raises(RuntimeError, match=said):
        getattr(flambeau.nn.functional, name)(flambeau.ones(1, 1, 4, 4), sizes)


def test_one_window_is_a_mean_over_any_number_of_dimensions():
    x = torch.arange(30.0).reshape(1, 1, 1, 2, 3, 5)
    for shape in ((3, 5), (2, 3, 5), (1, 1, 1, 2, 3, 5)):
        y = F.adaptive_avg_pool2d(x[(0,) * (6 - len(shape))] if len(shape) < 4 else x, 1)
        torch.testing.assert_close(y, x.reshape(-1, *shape)[0].mean((-1, -2), keepdim=True))
    assert F.adaptive_avg_pool3d(x, (1, 1, 1)).shape == (1, 1, 1, 1, 1, 1)
    assert F.adaptive_max_pool1d(torch.ones(0, 5), 2).shape == (0, 2)       # no channels
