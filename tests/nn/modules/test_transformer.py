"""Encoders and decoders."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn

cases = Cases()


def layer(t, kind, **options):
    return getattr(t.nn, f"Transformer{kind}Layer")(4, 2, 8, dropout=0.0, **options)


cases("TransformerEncoderLayer", lambda t: layer(t, "Encoder"), (5, 2, 4))
cases("TransformerEncoderLayer-options", lambda t: layer(
    t, "Encoder", activation="gelu", norm_first=True, batch_first=True), (2, 5, 4))
cases("TransformerDecoderLayer", lambda t: layer(t, "Decoder"), (3, 2, 4), (5, 2, 4))
cases("TransformerEncoder", lambda t: t.nn.TransformerEncoder(
    layer(t, "Encoder"), 2, t.nn.LayerNorm(4), enable_nested_tensor=False), (5, 2, 4))
cases("TransformerDecoder", lambda t: t.nn.TransformerDecoder(layer(t, "Decoder"), 2),
      (3, 2, 4), (5, 2, 4), call={"tgt_is_causal": False})
cases("Transformer", lambda t: t.nn.Transformer(4, 2, 1, 1, 8, dropout=0.0), (5, 2, 4), (3, 2, 4))


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/transformer",)


@pytest.mark.parametrize("activation, number", [
    ("relu", 1), ("gelu", 2), (nn.functional.relu, 1), (nn.GELU(), 2), (torch.tanh, 0),
    (nn.Tanh(), 0)])
def test_layers_say_which_activation_they_have(activation, number):
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=activation)
    assert layer.activation_relu_or_gelu == number


def test_an_empty_sequence():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    assert layer(torch.rand(0, 3, 4)).shape == (0, 3, 4)


def test_masks_of_what_comes_later():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert torch.equal(mask == 0, torch.ones(3, 3).tril().bool())
    torch.manual_seed(0)
    layer, x = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), torch.rand(3, 1, 4)
    whole = layer(x, mask, is_causal=True)
    torch.testing.assert_close(whole[:2], layer(x[:2], mask[:2, :2]))


def test_layers_are_copies_with_weights_of_their_own():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    first, second = encoder.layers
    assert torch.equal(first.linear1.weight, second.linear1.weight)
    assert first.linear1.weight is not second.linear1.weight is not layer.linear1.weight


def test_what_transformers_ask_first():
    with pytest.raises(AttributeError, match="has no attribute 'dim'"):
        nn.Transformer(4, 2, 1, 1, 8)([1], [1])
    layer = nn.Transformer(4, 2, 1, 1, 8, batch_first=True)
    for stack, given in ((layer.encoder, 1), (layer.decoder, 2)):
        with pytest.raises(IndexError, match="tuple index out of range"):
            stack(*[torch.ones(4)] * given)
