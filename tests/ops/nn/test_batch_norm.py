"""Layers that `flambeau/ops/nn/batch_norm.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch
import flambeau.nn.functional as F

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


def test_an_empty_batch_keeps_derivatives_of_all_orders():
    """Whatever the types are: there is nothing to compute in them."""
    x = torch.ones(0, 2, 3, requires_grad=True)
    weight, bias = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    y = F.batch_norm(x, None, None, weight, bias, training=True)
    assert (y.shape, y.dtype) == (x.shape, torch.float32)
    grads = torch.autograd.grad(y, (x, weight, bias), torch.ones_like(y), create_graph=True)
    assert [tuple(g.shape) for g in grads] == [(0, 2, 3), (2,), (2,)]
    assert torch.autograd.grad(grads[1].sum() + grads[0].sum(), x)[0].shape == x.shape
    assert F.batch_norm(torch.ones(0, 2, dtype=torch.int64), None, None, training=True
                        ).dtype is torch.int64
    with pytest.raises(RuntimeError, match="weight should contain 3 elements not 2"):
        F.batch_norm(torch.ones(0, 3), None, None, weight, training=True)


@pytest.mark.parametrize("own, others, said", [
    ("float32", ["float64"], "mixed dtype .CPU.: expect parameter to have scalar type of Float"),
    ("float64", ["float32"], "mixed dtype .CPU.: all inputs must share same datatype"),
    ("bfloat16", ["float32", "float64"], "mixed dtype .CPU.: expect parameter"),
    ("float32", ["float32", "float64"], "expected scalar type Float but found Double")])
def test_types_of_parameters(own, others, said):
    x = torch.ones(2, 2, 3, dtype=getattr(torch, own))
    with pytest.raises(RuntimeError, match=said):
        F.batch_norm(x, None, None, *[torch.ones(2, dtype=getattr(torch, o)) for o in others],
                     training=True)


def test_running_statistics_of_instances_may_have_another_type():
    x = torch.arange(12.0, dtype=torch.float64).reshape(2, 2, 3)
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.instance_norm(x, mean, var, momentum=0.5)
    torch.testing.assert_close(y, F.instance_norm(x), rtol=1e-7, atol=1e-7)
    assert y.dtype is torch.float64 and mean.tolist() == [2.0, 3.5]
