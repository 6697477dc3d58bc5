"""Observers and fake-quantising modules; numbers are PyTorch's."""
import copy
import subprocess
import sys
import warnings

import pytest

import flambeau as torch
from flambeau.ao import quantization as Q

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])
Y = torch.tensor([[-2.0, 0.5, 1.0], [0.5, 1.0, 4.0]])
SYMMETRIC = {"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}


def seen(observer):
    for t in (X, Y):
        assert observer(t) is t
    return observer


@pytest.mark.parametrize("observer, scale, zero", [
    (Q.MinMaxObserver(), [6 / 255], [85]), (Q.MinMaxObserver(dtype=torch.qint8), [6 / 255], [-43]),
    (Q.MinMaxObserver(**SYMMETRIC), [4 / 127.5], [0]),
    (Q.MinMaxObserver(qscheme=torch.per_tensor_symmetric), [4 / 127.5], [128]),
    (Q.MinMaxObserver(reduce_range=True), [6 / 127], [42]),
    (Q.MinMaxObserver(quant_min=0, quant_max=15), [0.4], [5]),
    (Q.MovingAverageMinMaxObserver(0.5), [5 / 255], [76]),
    (Q.PerChannelMinMaxObserver(), [4 / 255, 4 / 255], [127, 0]),
    (Q.PerChannelMinMaxObserver(ch_axis=1), [2.5 / 255, 3 / 255, 4 / 255], [204, 0, 0]),
    (Q.MovingAveragePerChannelMinMaxObserver(0.5), [3 / 255, 3.5 / 255], [128, 0]),
    (Q.FixedQParamsObserver(0.1, 3), [0.1], [3])])
def test_scales_and_zero_points(observer, scale, zero):
    found_scale, found_zero = seen(observer).calculate_qparams()
    torch.testing.assert_close(found_scale, torch.tensor(scale))
    assert found_zero.tolist() == zero


def test_before_anything_is_seen():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scale, zero = Q.MinMaxObserver().calculate_qparams()
    assert len(caught) == 1 and (scale.item(), zero.item()) == (1, 0)
    assert repr(Q.MinMaxObserver()) == "MinMaxObserver(min_val=inf, max_val=-inf)"


@pytest.mark.parametrize("make", [Q.MinMaxObserver, Q.PerChannelMinMaxObserver, Q.FakeQuantize,
                                  Q.default_per_channel_weight_fake_quant])
def test_state_is_kept(make):
    first, again = make(), make()
    first(X), first(Y)
    again.load_state_dict(first.state_dict())
    for a, b in zip(first.calculate_qparams(), again.calculate_qparams()):
        assert torch.equal(a, b)
    assert repr(copy.deepcopy(first)) == repr(first)


def test_other_observers():
    recorder = seen(Q.RecordingObserver())
    assert [t.shape for t in recorder.get_tensor_value()] == [(2, 3), (2, 3)]
    for blind in (Q.PlaceholderObserver(), Q.NoopObserver(), Q.ReuseInputObserver()):
        with pytest.raises(Exception, match="should not be called"):
            seen(blind).calculate_qparams()
    holder = torch.nn.Linear(2, 2)
    holder.activation_post_process = seen(Q.MinMaxObserver())
    state = Q.get_observer_state_dict(holder)
    assert [name.partition(".")[2] for name in state] == ["eps", "min_val", "max_val"]
    holder.activation_post_process = Q.MinMaxObserver()
    Q.load_observer_state_dict(holder, state)
    assert holder.activation_post_process.min_val == -2


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


def test_configurations_and_marks():
    config = Q.QConfig(Q.default_observer, Q.default_weight_observer)
    assert Q.qconfig_equals(config, Q.QConfig(Q.default_observer, Q.default_weight_observer))
    assert not Q.qconfig_equals(config, None)
    with pytest.raises(ValueError, match="observer instance"):
        Q.QConfig(Q.MinMaxObserver(), None)
    linear = torch.nn.Linear(3, 2)
    wrapped = Q.QuantWrapper(linear)
    assert torch.equal(wrapped(X), linear(X))
    linear.qconfig = config
    model = Q.add_quant_dequant(torch.nn.Sequential(linear, torch.nn.ReLU()))
    assert isinstance(model[0], Q.QuantWrapper) and isinstance(model[1], torch.nn.ReLU)


@pytest.mark.parametrize("call, error, text", [
    (lambda: Q.MinMaxObserver(dtype=torch.float), AssertionError, "only works for"),
    (lambda: Q.MinMaxObserver(qscheme=torch.per_channel_affine), NotImplementedError, "qscheme"),
    (lambda: Q.MinMaxObserver(quant_min=1, quant_max=5), AssertionError, "include 0"),
    (lambda: Q.FakeQuantize(quant_min=5, quant_max=1), AssertionError, "quant_min")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_storages_of_quantised_numbers():
    q = torch.quantize_per_tensor(X, 0.1, 10, torch.quint8)
    assert q.storage().tolist() == q.int_repr().flatten().tolist()
    assert (q.storage().dtype, q.element_size()) == (torch.quint8, 1)
    for name in ("QUInt8", "QInt8", "QInt32", "QUInt4x2", "QUInt2x4"):
        storage = getattr(torch, f"{name}Storage")([1, 2])
        assert storage.tolist() == [1, 2] and isinstance(storage, torch.storage.TypedStorage)


def test_four_bits_share_bytes():
    q = torch.quantize_per_channel(torch.arange(12.0).reshape(3, 4), torch.ones(3), torch.zeros(3),
                                   0, torch.quint4x2)
    assert q.int_repr().tolist() == [16, 50, 84, 118, 152, 186]
    assert q.dequantize().flatten().tolist() == list(range(12))
    packed = torch.ops.quantized.embedding_bag_prepack(q)
    assert torch.ops.quantized.embedding_4bit(packed, torch.tensor([1])).tolist() == [[4, 5, 6, 7]]


def test_engines():
    engines = torch.backends.quantized
    assert (engines.engine, "fbgemm" in engines.supported_engines) == ("x86", True)
    with pytest.raises(RuntimeError, match="not a valid value"):
        engines.engine = "abacus"


def test_former_names():
    from flambeau.nn.quantized.dynamic import Linear
    from flambeau.quantization.quantize import convert

    from flambeau.nn.intrinsic import qat
    assert Linear is torch.ao.nn.quantized.dynamic.Linear and convert is Q.convert
    assert qat is torch.ao.nn.intrinsic.qat and torch.nn.qat is torch.ao.nn.qat
    assert torch.quantization is Q and torch.nn.quantizable is torch.ao.nn.quantizable


@pytest.mark.parametrize("granularity, size", [
    (Q.PerTensor(), (8, 16)), (Q.PerAxis(0), (1, 16)), (Q.PerGroup(4), (1, 4)),
    (Q.PerRow(), (1, 16)), (Q.PerToken(), (1, 16))])
def test_blocks_that_share_a_scale(granularity, size):
    assert Q.get_block_size((8, 16), granularity) == size


def test_scripted_modules():
    """They are quantised as graphs, by name of submodule."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2),
                                torch.nn.ReLU()).eval()
    x, scripted = torch.randn(1, 1, 5, 5), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(model)
    assert torch.allclose(Q.fuse_conv_bn_jit(scripted)(x), model(x), atol=1e-6)
    config = {"": Q.default_qconfig}
    quantized = Q.quantize_jit(scripted, config, lambda m, v: m(v), [x])
    assert isinstance(quantized, torch.jit.ScriptModule)
    assert (quantized(x) - model(x)).abs().max() < 0.05 * model(x).abs().max()
    assert Q.script_qconfig(Q.default_qconfig).activation(X) is X
    with pytest.raises(ValueError, match="script"):
        Q.prepare_jit(model, config)


def test_graphs_are_kept():
    """A lowered graph is copied with its packed weights, which its state holds."""
    from flambeau.ao.quantization.quantize_fx import convert_fx, prepare_fx

    class Affine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(3, 2))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.w)

    def quantized():
        prepared = prepare_fx(Affine().eval(), Q.get_default_qconfig_mapping(), (X[:, :2],))
        prepared(X[:, :2])
        return convert_fx(prepared)

    first, second = quantized(), quantized()
    assert torch.equal(copy.deepcopy(first)(X[:, :2]), first(X[:, :2]))
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(X[:, :2]), first(X[:, :2]))
    with pytest.raises(AssertionError, match="prepare_fx"):
        convert_fx(torch.fx.symbolic_trace(Affine()))


def test_each_package_of_modules_can_be_imported_first():
    for package in ("quantizable", "quantized", "intrinsic", "qat", "quantized.dynamic"):
        subprocess.run([sys.executable, "-c", f"import flambeau.ao.nn.{package}"], check=True)
