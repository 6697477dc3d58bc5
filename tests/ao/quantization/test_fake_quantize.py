"""Rounding as quantised numbers do, in floating point."""
import flambeau as torch
from flambeau.ao import quantization as Q

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])


def test_fake_quantize():
    fake = Q.FakeQuantize(quant_min=0, quant_max=15)
    x = X.clone().requires_grad_()
    y = fake(x)
    scale, zero = fake.calculate_qparams()
    wanted = torch.fake_quantize_per_tensor_affine(X, scale, zero, 0, 15)
    assert torch.equal(y, wanted)
    fake.apply(Q.disable_observer)
    assert torch.equal(fake(x * 100).detach().amax(), (15 - zero[0]) * scale[0])
    (fake(x * 2).sum()).backward()
    assert set(x.grad.unique().tolist()) <= {0.0, 2.0}
    fake.apply(Q.disable_fake_quant)
    assert fake(x) is x
    fake.apply(Q.enable_fake_quant), fake.apply(Q.enable_observer)
    assert fake.observer_enabled.item() == fake.fake_quant_enabled.item() == 1


def test_usual_choices():
    channels = Q.default_per_channel_weight_fake_quant()
    assert torch.equal(channels(X)[0], Q.default_weight_fake_quant()(X[:1])[0])
    fixed = Q.default_fixed_qparams_range_0to1_fake_quant()
    assert fixed(torch.tensor([2.0, 0.5])).tolist() == [255 / 256, 0.5]
    assert torch.equal(Q.default_fused_act_fake_quant()(X), Q.FakeQuantize(
        quant_min=0, quant_max=255)(X))
    assert (Q.default_fake_quant().quant_min, Q.default_fake_quant().quant_max) == (0, 127)


def test_fixed_numbers_are_shown():
    assert repr(Q.default_fixed_qparams_range_neg1to1_fake_quant()) == (
        "FixedQParamsFakeQuantize(\n"
        "  fake_quant_enabled=tensor([1], dtype=torch.uint8), observer_enabled=tensor([1], "
        "dtype=torch.uint8), scale=tensor([0.0078]), zero_point=tensor([128], dtype=torch.int32), "
        "dtype=torch.quint8, quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine\n"
        "  (activation_post_process): FixedQParamsObserver()\n)")
