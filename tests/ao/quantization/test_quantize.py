"""Eager mode: modules are watched, then swapped."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as Q

X = torch.linspace(-1, 1, 24).view(6, 4)


def model():
    torch.manual_seed(0)
    made = nn.Sequential(Q.QuantStub(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2),
                         Q.DeQuantStub())
    made.qconfig = Q.get_default_qconfig("fbgemm")
    return made


def test_static():
    real = model().eval()
    prepared = Q.prepare(real)
    assert not hasattr(real[1], "activation_post_process")
    assert hasattr(prepared[1], "activation_post_process")
    prepared(X)
    found = Q.convert(prepared)
    assert [type(m).__name__ for m in found] == ["Quantize", "Linear", "ReLU", "Linear",
                                                 "DeQuantize"]
    assert (found(X) - real(X)).abs().max() < 0.02
    assert not hasattr(found, "qconfig")
    again = Q.quantize(real, lambda m, x: m(x), [X])
    torch.testing.assert_close(again(X), found(X))


@pytest.mark.parametrize(("dtype", "bound"), [(torch.qint8, 0.02), (torch.float16, 1e-3)])
def test_dynamic(dtype, bound):
    real = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    found = Q.quantize_dynamic(real, {nn.Linear}, dtype=dtype)
    assert type(found[0]) is torch.ao.nn.quantized.dynamic.Linear and found[0] is not real[0]
    assert (found(X) - real(X)).abs().max() < bound
    by_name = Q.quantize_dynamic(real, {"0": Q.default_dynamic_qconfig})
    assert type(by_name[0]) is torch.ao.nn.quantized.dynamic.Linear
    with pytest.raises(ValueError, match=r"quantize to the specified dtype|Don't know how"):
        Q.quantize_dynamic(real, dtype=torch.int32)


def test_training_with_rounding():
    real = model().train()
    real.qconfig = Q.get_default_qat_qconfig("fbgemm")
    prepared = Q.prepare_qat(real)
    assert type(prepared[1]) is torch.ao.nn.qat.Linear
    prepared(X).sum().backward()
    assert prepared[1].weight.grad is not None
    found = Q.convert(prepared.eval())
    assert (found(X) - prepared(X)).abs().max() < 0.05
    with pytest.raises(AssertionError, match="only works on models in training mode"):
        Q.prepare_qat(model().eval())


def test_configurations_are_handed_down():
    made = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    Q.propagate_qconfig_(made, {"": Q.default_qconfig, "1.0": None,
                                nn.ReLU: Q.float16_static_qconfig})
    assert made[0].qconfig.activation().dtype is torch.quint8 and made[1][0].qconfig is None
    assert made[1][1].qconfig.activation().dtype is torch.float16


def test_nothing_to_watch():
    with pytest.warns(UserWarning, match="None of the submodule got qconfig applied"):
        Q.prepare(nn.Sequential(nn.Linear(2, 2)))
