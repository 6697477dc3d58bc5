"""How `Module.to` converts parameters, as `torch.__future__` says."""
import flambeau as torch
from flambeau import __future__ as conversion


def test_converted_parameters_are_new_objects_or_change_places():
    layer = torch.nn.Linear(2, 3)
    weight = layer.weight
    assert layer.double().weight is weight
    conversion.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.float().weight is not weight and weight.dtype is torch.float64
    finally:
        conversion.set_overwrite_module_params_on_conversion(False)
    weight = layer.weight
    conversion.set_swap_module_params_on_conversion(True)
    try:
        assert conversion.get_swap_module_params_on_conversion()
        assert layer.double().weight is weight and weight.dtype is torch.float64
    finally:
        conversion.set_swap_module_params_on_conversion(False)
