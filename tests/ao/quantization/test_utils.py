"""What the tools of quantisation ask of ranges, configurations and modules."""
import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as quantization
from flambeau.ao.quantization import utils


@pytest.mark.parametrize("qscheme", [torch.per_tensor_affine, torch.per_tensor_symmetric])
def test_a_range_fits_into_the_integers(qscheme):
    low, high = torch.tensor([-0.5]), torch.tensor([2.0])
    scale, zero = utils.determine_qparams(low, high, 0, 255, torch.uint8, torch.tensor([1e-6]),
                                          False, qscheme)
    assert scale.dtype is torch.float64 and zero.dtype is torch.int64
    ends = (torch.tensor([0.0, 255.0]) - zero) * scale
    assert ends[0] <= -0.5 + scale and ends[1] >= 2.0 - scale.item()
    assert zero.item() == (128 if qscheme is torch.per_tensor_symmetric else 51)


def test_ranges_of_integers():
    assert utils.calculate_qmin_qmax(None, None, False, torch.qint8, True) == (-64, 63)
    assert utils.calculate_qmin_qmax(0, 15, True, torch.quint8, False) == (0, 15)
    assert utils.calculate_qmin_qmax(None, None, False, torch.qint32, True) == (-2 ** 31,
                                                                               2 ** 31 - 1)
    with pytest.raises(AssertionError, match="must include 0"):
        utils.validate_qmin_qmax(1, 3)
    with pytest.warns(UserWarning, match="must run observer"):
        assert not utils.check_min_max_valid(torch.tensor([]), torch.tensor([]))


def test_kinds_of_configurations():
    static = quantization.default_qconfig
    dynamic = quantization.default_dynamic_qconfig
    assert utils.get_quant_type(static) is quantization.QuantType.STATIC
    assert utils.get_quant_type(dynamic) is quantization.QuantType.DYNAMIC
    assert utils.activation_is_statically_quantized(static)
    assert not utils.activation_is_statically_quantized(dynamic)
    assert utils.op_is_int8_dynamically_quantized(dynamic)
    assert utils.weight_is_quantized(static)
    assert utils.weight_is_quantized(quantization.float16_dynamic_qconfig)
    assert utils.activation_is_statically_quantized(quantization.float16_static_qconfig)
    assert not utils.weight_is_quantized(quantization.QConfig(
        static.activation, quantization.PlaceholderObserver.with_args(dtype=torch.qint32)))
    assert utils.to_underlying_dtype(torch.quint8) is torch.uint8


def test_modules():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 3), nn.Bilinear(3, 3, 1)

        def forward(self, x, scale=1.0):
            return self.second(self.first(x), input2=self.first(x)) * scale

    model, x = Sum(), torch.ones(1, 2)
    found = utils.get_fqn_to_example_inputs(model, (x,))
    assert set(found) == {"", "first", "second"}
    assert found[""] == (x,) and found["first"] == (x,)
    assert utils._parent_name("a.b.c") == ("a.b", "c") and utils._parent_name("a") == ("", "a")
    assert utils._get_path_of_module(model, model.second) == "second"
    assert utils.getattr_from_fqn(model, "first.weight") is model.first.weight
    assert utils.has_no_children_ignoring_parametrizations(model.first)
    assert utils._assert_and_get_unique_device(model) == torch.device("cpu")
    np.testing.assert_equal(utils.get_combined_dict({1: 2}, {1: 3, 4: 5}), {1: 3, 4: 5})
