"""Batch normalization."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases, warmed

import flambeau as torch
from flambeau import nn

cases = Cases()
IMAGES = {1: (4, 6, 5), 2: (3, 6, 4, 2), 3: (2, 6, 2, 3, 2)}
for name, shape in {f"BatchNorm{n}d": shape for n, shape in IMAGES.items()}.items():
    cases.plain(name, shape, options="6")
    cases(f"{name}-options", lambda t, name=name: getattr(t.nn, name)(
        6, eps=1e-3, momentum=0.3, affine=True, track_running_stats=True), shape)
    cases(f"{name}-eval", lambda t, name=name: getattr(t.nn, name)(6, affine=True, bias=False),
          shape, eval=True)
    cases(f"Lazy{name}", lambda t, name=name, s=shape: warmed(t, f"Lazy{name}", (), s), shape)
cases("BatchNorm1d-2D", lambda t: t.nn.BatchNorm1d(6, momentum=None), (5, 6))
cases("BatchNorm2d-not-affine", lambda t: t.nn.BatchNorm2d(6, affine=False), IMAGES[2])
cases("BatchNorm2d-no-stats", lambda t: t.nn.BatchNorm2d(6, track_running_stats=False), IMAGES[2])
cases("SyncBatchNorm", lambda t: t.nn.SyncBatchNorm(6), IMAGES[2], eval=True)


class TestLayers(ModuleTests):
    cases = cases


@pytest.mark.parametrize("layer", [nn.LazyBatchNorm1d, nn.LazyInstanceNorm1d])
def test_statistics_that_wait_for_their_shape_change_their_type(layer):
    norm = layer(affine=True, track_running_stats=True).double()
    assert isinstance(norm.running_mean, nn.UninitializedBuffer)
    x = torch.rand(3, 2, 4, dtype=torch.float64)
    assert norm(x).dtype is torch.float64 and norm.running_mean.dtype is torch.float64
    assert type(norm).__name__ == layer.__name__.removeprefix("Lazy")


@pytest.mark.parametrize("momentum, wanted", [(0.25, 0.25 * 4 + 0.75 * 0.25 * 2), (None, 3.0)])
def test_running_statistics(momentum, wanted):
    """An exponential mean; without momentum, the mean of all batches."""
    norm = nn.BatchNorm1d(1, momentum=momentum)
    for mean in (2.0, 4.0):
        norm(torch.tensor([[mean - 1], [mean + 1]]))
    assert norm.running_mean.item() == pytest.approx(wanted)
    assert norm.num_batches_tracked.item() == 2


def test_old_states_have_no_count():
    norm = nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    norm.num_batches_tracked += 5
    assert str(norm.load_state_dict(state)) == "<All keys matched successfully>"
    assert norm.num_batches_tracked.item() == 5


@pytest.mark.parametrize("layer, shape, message", [
    (nn.BatchNorm1d, (2, 3, 4, 5), r"expected 2D or 3D input \(got 4D input\)"),
    (nn.BatchNorm2d, (2, 3), r"expected 4D input \(got 2D input\)"),
    (nn.BatchNorm3d, (2, 3, 4, 5), r"expected 5D input \(got 4D input\)"),
    (nn.BatchNorm1d, (1, 3), "Expected more than 1 value per channel when training")])
def test_shapes(layer, shape, message):
    with pytest.raises(ValueError, match=message):
        layer(3)(torch.rand(shape))


def test_layers_become_synchronized_ones():
    net = nn.Sequential(nn.BatchNorm2d(3, eps=0.1), nn.ReLU())
    net[0].running_mean += 2
    found = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(found[0]) is nn.SyncBatchNorm and found[0].eps == 0.1
    assert found[0].running_mean.tolist() == [2, 2, 2] and found[0].weight is net[0].weight
