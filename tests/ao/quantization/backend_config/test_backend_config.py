"""Descriptions of what a backend can quantise."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.quantization.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)

ROW = (nn.Linear, nn.ReLU)


def test_types():
    config = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)
    assert (config.input_dtype, config.weight_dtype) == (torch.quint8, torch.qint8)
    assert config == DTypeConfig(torch.quint8, torch.quint8, torch.qint8, bias_dtype=torch.float)
    assert config != DTypeConfig(torch.quint8)
    assert DTypeConfig.from_dict(config.to_dict()) == config and DTypeConfig().to_dict() == {}
    assert list(config.to_dict()) == ["input_dtype", "output_dtype", "weight_dtype", "bias_dtype"]


def test_bounds():
    bounds = DTypeWithConstraints(torch.quint8, 0, 127, scale_min_lower_bound=2 ** -12)
    config = DTypeConfig(bounds, is_dynamic=True)
    assert config.input_dtype is torch.quint8 and config.output_dtype is None
    assert config.to_dict() == {"input_dtype": bounds, "is_dynamic": True}
    assert "quant_max_upper_bound=127" in repr(bounds) and repr(bounds) in repr(config)
    with pytest.raises(ValueError, match=r"input_dtype to be a torch.dtype or DTypeWithCon"):
        DTypeConfig.from_dict({"input_dtype": 3})


def test_a_pattern_is_described_step_by_step():
    config = BackendPatternConfig(ROW)
    assert config.to_dict() == {
        "observation_type": ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT,
        "dtype_configs": [], "pattern": ROW}
    shared = ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
    found = config.set_observation_type(shared).add_dtype_config(DTypeConfig(is_dynamic=True)) \
        .set_root_module(nn.Linear).set_qat_module(nn.Tanh).set_fuser_method(max) \
        .set_reference_quantized_module(nn.ELU).set_fused_module(nn.Sigmoid)
    assert found is config and config.to_dict() == {
        "observation_type": shared, "dtype_configs": [{"is_dynamic": True}], "pattern": ROW,
        "root_module": nn.Linear, "qat_module": nn.Tanh,
        "reference_quantized_module_for_root": nn.ELU, "fused_module": nn.Sigmoid,
        "fuser_method": max}
    again = BackendPatternConfig.from_dict(config.to_dict())
    assert again.to_dict() == config.to_dict() and again.dtype_configs == config.dtype_configs


def test_printed_form():
    config = BackendPatternConfig(nn.ReLU).set_fused_module(nn.ELU)
    kind = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
    assert repr(config) == "BackendPatternConfig(" + repr(
        {"pattern": nn.ReLU, "observation_type": kind, "fused_module": nn.ELU}) + ")"
    assert repr(config.add_dtype_config(DTypeConfig())).count("DTypeConfig(") == 1


def test_wrong_entries():
    with pytest.raises(ValueError, match=r"Expected a list of DTypeConfigs in.*<class 'int'>"):
        BackendPatternConfig.from_dict({"dtype_configs": [3]})
    with pytest.raises(ValueError, match="Only one of 'pattern' or 'pattern_complex_format'"):
        BackendPatternConfig(nn.Linear)._set_pattern_complex_format(ROW[::-1])
    with pytest.raises(ValueError, match=r"backend_config_dict.*to be a dictionary"):
        BackendConfig.from_dict({"configs": [3]})


def test_a_backend():
    import flambeau.ao.quantization.quantize_fx  # noqa: F401 - PyTorch needs it
    first, second = BackendPatternConfig(ROW), BackendPatternConfig(ROW).set_fused_module(nn.ELU)
    backend = BackendConfig("mine").set_backend_pattern_configs(
        [first, BackendPatternConfig(nn.Tanh)])
    assert backend.name == "mine" and backend.configs[0] is first
    assert backend.set_backend_pattern_config(second) is backend
    assert backend.configs[0] is second and len(backend.configs) == 2
    held = backend.set_name("yours").to_dict()
    assert held["name"] == "yours" and BackendConfig.from_dict(held).to_dict() == held
    with pytest.raises(ValueError, match="Expected a tuple with 2 or 3 elements"):
        BackendConfig().set_backend_pattern_config(BackendPatternConfig((nn.Linear,)))
    assert repr(BackendConfig()) == (
        "BackendConfig({'name': '', '_pattern_complex_format_to_config': {}})")


@pytest.mark.skipif(torch.__name__ == "torch", reason="PyTorch describes its backends")
@pytest.mark.parametrize("name", ["get_native_backend_config", "get_fbgemm_backend_config"])
def test_descriptions_that_are_missing_are_named(name):
    with pytest.raises(NotImplementedError, match=f"backend_config.{name}"):
        getattr(torch.ao.quantization.backend_config, name)()
