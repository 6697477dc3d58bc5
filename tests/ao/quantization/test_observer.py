"""Observers: scales and zero points of what they have seen; numbers are PyTorch's."""
import copy
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


@pytest.mark.parametrize("call, error, text", [
    (lambda: Q.MinMaxObserver(dtype=torch.float), AssertionError, "only works for"),
    (lambda: Q.MinMaxObserver(qscheme=torch.per_channel_affine), NotImplementedError, "qscheme"),
    (lambda: Q.MinMaxObserver(quant_min=1, quant_max=5), AssertionError, "include 0"),
    (lambda: Q.FakeQuantize(quant_min=5, quant_max=1), AssertionError, "quant_min")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(("dtype", "bounds", "reduced", "middle"), [
    ("qint8", (-128, 127), (-64, 63), 0), ("quint8", (0, 255), (0, 127), 128),
    ("int16", (-2 ** 15, 2 ** 15 - 1), (-2 ** 15, 2 ** 15 - 1), 0),
    ("uint16", (0, 2 ** 16 - 1), (0, 2 ** 16 - 1), 2 ** 15),
    ("qint32", (-2 ** 31, 2 ** 31 - 1), (-2 ** 31, 2 ** 31 - 1), 0),
    ("quint4x2", (0, 15), (0, 15), 0)])
def test_ranges_of_types(dtype, bounds, reduced, middle):
    """Only those of 8 bits are halved, unless the range was asked for: as PyTorch 2.13 has them."""
    kind = getattr(torch, dtype)
    for reduce_range, expected in ((False, bounds), (True, reduced)):
        observer = Q.MinMaxObserver(dtype=kind, reduce_range=reduce_range)
        assert (observer.quant_min, observer.quant_max) == expected
    observer = Q.MinMaxObserver(dtype=kind, quant_min=0, quant_max=9,
                                                    reduce_range=True)
    assert (observer.quant_min, observer.quant_max) == (0, 4)
    observer = Q.MinMaxObserver(dtype=kind, qscheme=torch.per_tensor_symmetric)
    observer(torch.tensor([-1.0, 2.0]))
    assert observer.calculate_qparams()[1].item() == middle


def test_observers_of_two_bits_are_refused():
    with pytest.raises(AssertionError, match="Default Observer only works for"):
        Q.MinMaxObserver(dtype=torch.quint2x4)
