"""Which class becomes which."""
import pytest

from flambeau import nn
from flambeau.ao import quantization as Q
from flambeau.ao.nn import intrinsic, qat, quantizable, quantized
from flambeau.ao.nn.intrinsic import qat as intrinsic_qat
from flambeau.ao.nn.intrinsic import quantized as intrinsic_quantized
from flambeau.ao.nn.quantized import dynamic, reference
from flambeau.ao.quantization import quantization_mappings as mappings


@pytest.mark.parametrize("name, pairs", [
    ("static_quant", {nn.Linear: quantized.Linear, nn.Conv1d: quantized.Conv1d,
                      Q.QuantStub: quantized.Quantize, nn.PReLU: quantized.PReLU,
                      intrinsic.ConvReLU2d: intrinsic_quantized.ConvReLU2d,
                      qat.Conv2d: quantized.Conv2d, intrinsic_qat.LinearBn1d: quantized.Linear}),
    ("qat", {nn.Linear: qat.Linear, intrinsic.ConvBn2d: intrinsic_qat.ConvBn2d}),
    ("dynamic_quant", {nn.LSTM: dynamic.LSTM, nn.GRUCell: dynamic.GRUCell,
                       qat.dynamic.Linear: dynamic.Linear, nn.Embedding: quantized.Embedding})])
def test_pairs(name, pairs):
    mapping = getattr(Q, f"get_default_{name}_module_mappings")()
    assert {kind: mapping[kind] for kind in pairs} == pairs


def test_static_mappings_are_copies():
    mapping = Q.get_default_static_quant_module_mappings()
    mapping.clear()
    assert nn.Linear in Q.get_default_static_quant_module_mappings()


def test_embeddings():
    assert Q.get_embedding_qat_module_mappings()[nn.Embedding] is qat.Embedding
    assert nn.Embedding not in Q.get_default_qat_module_mappings()
    assert Q.get_embedding_static_quant_module_mappings()[qat.Embedding] is quantized.Embedding


def test_one_class():
    assert Q.get_static_quant_module_class(nn.Linear) is quantized.Linear
    assert Q.get_static_quant_module_class(nn.Linear, is_reference=True) is reference.Linear
    assert Q.get_dynamic_quant_module_class(nn.GRU) is dynamic.GRU
    mine = {nn.Linear: nn.Identity}
    assert Q.get_static_quant_module_class(nn.Linear, mine) is nn.Identity
    for find in (Q.get_static_quant_module_class, Q.get_dynamic_quant_module_class):
        with pytest.raises(AssertionError, match="does not have a corresponding quantized module"):
            find(nn.Tanh)


def test_functions():
    assert "elu" in str(Q.get_quantized_operator(nn.functional.elu))
    with pytest.raises(AssertionError, match="does not have corresponding quantized op"):
        Q.get_quantized_operator(nn.functional.tanh)
    assert set(Q.get_default_float_to_quantized_operator_mappings()) == {
        getattr(nn.functional, name) for name in (
            "elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")}


def test_what_is_watched():
    watched = Q.get_default_qconfig_propagation_list()
    assert {nn.Linear, nn.Sequential, nn.LSTM, qat.Conv2d} <= watched and nn.Tanh not in watched
    compared = Q.get_default_compare_output_module_list()
    assert {quantized.Linear, dynamic.LSTM} <= compared
    assert mappings.no_observer_set() == {quantizable.LSTM, quantizable.MultiheadAttention}


def test_results_of_known_range():
    assert mappings._has_special_act_post_process(nn.Sigmoid().train())
    assert not mappings._has_special_act_post_process(nn.Sigmoid().eval())
    watch = mappings._get_special_act_post_process(nn.Tanh())()
    assert watch.scale.item() == 2 / 256 and watch.zero_point.item() == 128
    assert mappings._get_special_act_post_process(nn.Linear(1, 1)) is None
