"""Layers that follow each other become one."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as Q
from flambeau.ao.nn import intrinsic as nni


def randomized(norm):
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize(("layers", "kind", "shape"), [
    (lambda: (nn.Conv1d(2, 3, 1), randomized(nn.BatchNorm1d(3))), nn.Conv1d, (2, 2, 4)),
    (lambda: (nn.Conv2d(2, 3, 1), randomized(nn.BatchNorm2d(3)), nn.ReLU()), nni.ConvReLU2d,
     (2, 2, 3, 3)),
    (lambda: (nn.Conv3d(2, 3, 1), nn.ReLU()), nni.ConvReLU3d, (1, 2, 2, 2, 2)),
    (lambda: (nn.Linear(2, 3), randomized(nn.BatchNorm1d(3))), nn.Linear, (4, 2)),
    (lambda: (nn.Linear(2, 3), nn.ReLU()), nni.LinearReLU, (4, 2)),
    (lambda: (nn.ConvTranspose2d(2, 3, 2), randomized(nn.BatchNorm2d(3))), nn.ConvTranspose2d,
     (1, 2, 3, 3)),
    (lambda: (randomized(nn.BatchNorm2d(2)), nn.ReLU()), nni.BNReLU2d, (1, 2, 3, 3)),
])
def test_one_layer_computes_what_all_did(layers, kind, shape):
    torch.manual_seed(0)
    model = nn.Sequential(*layers()).eval()
    fused = Q.fuse_modules(model, [[str(i) for i in range(len(model))]])
    assert type(fused[0]) is kind and fused is not model
    assert all(type(m) is nn.Identity for m in fused[1:])
    x = torch.randn(shape)
    torch.testing.assert_close(fused(x), model(x))


def test_while_training_layers_stay_apart():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU())
    fused = Q.fuse_modules_qat(model, ["0", "1", "2"], inplace=True)
    assert fused is model and type(model[0]) is nni.ConvBnReLU2d
    assert [type(m) for m in model[0]] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]


@pytest.mark.parametrize(("names", "training", "error"), [
    ([["0", "2"]], False, AssertionError), ([["0", "1"]], True, Exception),
    ([["0", "nothing"]], False, AttributeError)])
def test_what_is_refused(names, training, error):
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Linear(2, 2)).train(training)
    with pytest.raises(error):
        Q.fuse_modules(model, names)
