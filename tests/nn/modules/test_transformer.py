"""Encoders and decoders."""
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

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
