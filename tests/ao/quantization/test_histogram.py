"""The range whose quantisation loses least."""
import warnings

import pytest

import flambeau as torch
from flambeau.ao.quantization import HistogramObserver


def seen(*tensors, **options):
    observer = HistogramObserver(**options)
    for x in tensors:
        assert observer(x) is x
    return observer


def test_even_numbers_keep_their_range():
    scale, zero = seen(torch.linspace(-1, 1, 5000)).calculate_qparams()
    assert abs(scale.item() - 2 / 255) < 2e-4 and abs(zero.item() - 128) <= 1


def test_a_lone_large_number_is_cut_off():
    x = torch.cat([torch.linspace(0, 1, 500000), torch.tensor([1.5])])
    scale, _ = seen(x).calculate_qparams()
    assert 0.98 / 255 < scale.item() < 1.1 / 255


def test_counts_go_over_to_a_wider_range():
    observer = seen(torch.linspace(0, 1, 1000), torch.linspace(-3, 2, 500), bins=64)
    assert observer.histogram.shape == (64,) and observer.histogram.sum().item() == 1500
    assert (observer.min_val.item(), observer.max_val.item()) == (-3, 2)
    narrow = seen(torch.linspace(-3, 2, 500), torch.linspace(0, 1, 1000), bins=64)
    assert narrow.histogram.sum().item() == 1500


def test_equal_numbers():
    observer = seen(torch.full((10,), 2.0), torch.full((5,), 2.0))
    assert observer.histogram.sum() == 15
    scale, zero = observer.calculate_qparams()
    assert scale.item() == pytest.approx(2 / 255) and zero.item() == 0


def test_nothing_and_infinities():
    with pytest.warns(UserWarning, match="must run observer before calling calculate_qparams"):
        scale, zero = seen(torch.empty(0)).calculate_qparams()
    assert (scale.item(), zero.item()) == (1, 0)
    with pytest.warns(UserWarning, match=r"torch.inf detected in input tensor"):
        observer = seen(torch.tensor([1.0, float("inf"), 3.0, -float("inf")]))
    assert (observer.min_val.item(), observer.max_val.item()) == (1, 3)


@pytest.mark.parametrize("options, top", [
    ({"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}, 0),
    ({"reduce_range": True}, 64), ({"quant_min": 0, "quant_max": 15}, 8)])
def test_kinds_of_ranges(options, top):
    scale, zero = seen(torch.linspace(-1, 1, 4000), **options).calculate_qparams()
    assert abs(zero.item() - top) <= 1
    steps = {0: 255, 64: 127, 8: 15}[top]
    assert scale.item() == pytest.approx(2 / steps, rel=0.03)


def test_state():
    observer = seen(torch.randn(100))
    state = observer.state_dict()
    assert list(state) == ["eps", "histogram", "min_val", "max_val"]
    other = HistogramObserver()
    other.load_state_dict(state)
    assert torch.equal(other.calculate_qparams()[0], observer.calculate_qparams()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert repr(observer) == (f"HistogramObserver(min_val={observer.min_val}, "
                                  f"max_val={observer.max_val})")


def test_refusals():
    with pytest.raises(NotImplementedError, match="doesn't support dynamic quantization"):
        HistogramObserver(is_dynamic=True)
    with pytest.raises(NotImplementedError):
        HistogramObserver(qscheme=torch.per_channel_affine)
