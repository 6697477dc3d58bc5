"""What programs say about single modules."""
import pytest

from flambeau import nn
from flambeau.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)


@pytest.mark.parametrize("kind", [ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig])
def test_attributes_to_keep(kind):
    config = kind()
    assert config.preserved_attributes == []
    assert config.set_preserved_attributes(["a", "b"]) is config
    assert config.preserved_attributes == ["a", "b"]
    assert config.to_dict() == {"preserved_attributes": ["a", "b"]}
    assert kind.from_dict({"preserved_attributes": ["c"]}).preserved_attributes == ["c"]
    assert kind().to_dict() == {}


def test_settings_are_made_one_by_one():
    config = PrepareCustomConfig().set_non_traceable_module_names(["head"]) \
        .set_non_traceable_module_classes([nn.Linear]).set_input_quantized_indexes([0]) \
        .set_output_quantized_indexes([1, 2])
    assert config.non_traceable_module_names == ["head"]
    assert config.input_quantized_indexes == [0] and config.output_quantized_indexes == [1, 2]
    held = {"non_traceable_module_name": ["head"], "non_traceable_module_class": [nn.Linear],
            "input_quantized_idxs": [0], "output_quantized_idxs": [1, 2]}
    assert config.to_dict() == held
    assert PrepareCustomConfig.from_dict(held).to_dict() == held
