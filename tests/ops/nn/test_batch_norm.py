"""Layers that `flambeau/ops/nn/batch_norm.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("batch_norm_train", lambda t, F, x, w, b: F.batch_norm(x, None, None, w, b, True),
       (4, 3, 2), (3,), (3,))
simple("batch_norm_plain", lambda t, F, x: F.batch_norm(x, None, None, training=True), (5, 3))


@cases("batch_norm_eval")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    return torch.nn.functional.batch_norm(make(2, 3, 2, 2), mean, var, make(3), make(3))


@cases("batch_norm_running")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    y = torch.nn.functional.batch_norm(make(4, 3), mean, var, training=True, momentum=0.3)
    return torch.cat([y, mean[None], var[None]])


@cases("instance_norm_running")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    y = torch.nn.functional.instance_norm(make(2, 3, 4), mean, var, make(3), make(3), momentum=0.3)
    return torch.cat([y.sum(2), mean[None], var[None]])


simple("instance_norm", lambda t, F, x, w, b: F.instance_norm(x, None, None, w, b), (2, 3, 5), (3,),
       (3,))


class TestLayers(LayerTests):
    cases = cases
