"""Operations on quantised tensors that no module stands for."""
import pytest

import flambeau as torch
from flambeau.ao.nn.quantized import FloatFunctional, QFunctional
from flambeau.ao.quantization import default_observer


def quantised(zero):
    return torch.quantize_per_tensor(torch.randn(3, 4), 0.02, zero, torch.quint8)


@pytest.mark.parametrize("name", ["add", "mul", "add_relu"])
def test_results_have_the_scale_of_the_module(name):
    step, x, y = QFunctional(), quantised(120), quantised(100)
    step.scale, step.zero_point = 0.05, 100
    found = getattr(step, name)(x, y)
    wanted = getattr(FloatFunctional(), name)(x.dequantize(), y.dequantize())
    assert (found.q_scale(), found.q_zero_point()) == (0.05, 100)
    torch.testing.assert_close(found.dequantize(), wanted.clamp(-5, 7.75), atol=0.0251, rtol=0)


def test_joining():
    step, x = QFunctional(), quantised(120)
    step.scale, step.zero_point = 0.02, 120
    assert torch.equal(step.cat([x, x], 1).int_repr(), torch.cat([x.int_repr()] * 2, 1))


@pytest.mark.parametrize("name, number", [("add_scalar", 0.5), ("mul_scalar", 3.0)])
def test_with_a_number_the_scale_follows(name, number):
    x = quantised(120)
    found = getattr(QFunctional(), name)(x, number)
    wanted = getattr(FloatFunctional(), name)(x.dequantize(), number)
    torch.testing.assert_close(found.dequantize(), wanted, atol=0.011, rtol=0)


def test_from_what_was_observed():
    step = FloatFunctional()
    step.activation_post_process = default_observer()
    step.add(torch.tensor([-1.0]), torch.tensor([3.0]))
    found = QFunctional.from_float(step)
    scale, zero = step.activation_post_process.calculate_qparams()
    assert (found.scale, found.zero_point) == (float(scale), int(zero))
    with pytest.raises(AssertionError, match="expects an instance of FloatFunctional"):
        QFunctional.from_float(torch.nn.Identity())


def test_state_and_printed_form():
    step, other = QFunctional(), QFunctional()
    step.scale, step.zero_point = 0.25, 3
    assert "QFunctional(\n  scale=0.25, zero_point=3\n" in repr(step)
    other.load_state_dict(step.state_dict())
    assert (other.scale, other.zero_point) == (0.25, 3)
    with pytest.raises(RuntimeError, match=r"^Functional is not intended to use the "
                                           "'forward'. Please use the underlying operation"):
        step(torch.zeros(1))
