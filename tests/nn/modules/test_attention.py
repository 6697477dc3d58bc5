"""MultiheadAttention as one op, where nothing is differentiated, and on nested tensors."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn

cases = Cases()
cases("MultiheadAttention", lambda t: t.nn.MultiheadAttention(4, 2), (3, 2, 4), (5, 2, 4),
      (5, 2, 4))
cases("MultiheadAttention-options", lambda t: t.nn.MultiheadAttention(
    4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5, batch_first=True),
    (2, 3, 4), (2, 6, 3), (2, 6, 5), call={"average_attn_weights": False})


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/attention",)


@pytest.fixture
def attention():
    torch.manual_seed(0)
    return nn.MultiheadAttention(8, 2, batch_first=True).eval()


@pytest.fixture
def nested():
    return torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(2, 8)])


def masks():
    rows = torch.tensor([[False, True, True], [False, False, True], [False] * 3])
    padding = torch.tensor([[False, False, True], [False, True, True]])
    return [{}, {"attn_mask": rows}, {"key_padding_mask": padding},
            {"attn_mask": rows, "key_padding_mask": padding},
            {"attn_mask": rows.expand(4, 3, 3)}, {"average_attn_weights": False}]


@pytest.mark.parametrize("options", masks())
def test_one_op_gives_what_single_steps_give(attention, options):
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        once = attention(x, x, x, **options)
    steps = attention(x, x, x, **options)
    for a, b in zip(once, steps):
        torch.testing.assert_close(a, b.detach())
    assert once[0].is_contiguous() and not steps[0].is_contiguous()


def test_can_be_forbidden(attention):
    x = torch.randn(2, 3, 8)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            assert not attention(x, x, x)[0].is_contiguous()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_parts_of_a_nested_tensor_do_not_see_each_other(attention, nested):
    with torch.no_grad():
        result, weights = attention(nested, nested, nested)
        parts = [attention(*[p.unsqueeze(0)] * 3) for p in nested.unbind()]
    for found, (expected, _) in zip(result.unbind(), parts):
        torch.testing.assert_close(found, expected[0])
    assert weights.shape == (2, 3, 3)
    torch.testing.assert_close(weights[1, :2, :2], parts[1][1][0])
    assert not weights[1, 2].any() and not weights[1, :, 2].any()


def test_encoder_takes_nested_tensors(nested):
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    with torch.no_grad():
        for found, part in zip(encoder(nested).unbind(), nested.unbind()):
            torch.testing.assert_close(found, encoder(part.unsqueeze(0))[0])


@pytest.mark.parametrize("change, why", [
    (lambda m: m.train(), "training is enabled"),
    (lambda m: setattr(m, "batch_first", False), "batch_first was not True"),
    (lambda m: m.double(), r"dtypes of query \(torch.float32\) and self.in_proj_bias "
                           r"\(torch.float64\) don't match"),
    (lambda m: setattr(m, "add_zero_attn", True), "add_zero_attn was enabled"),
])
def test_nested_tensors_need_the_one_op(attention, nested, change, why):
    change(attention)
    with torch.no_grad(), pytest.raises(AssertionError, match="was not hit because " + why):
        attention(nested, nested, nested)


def test_nested_tensors_have_no_gradients_here(attention, nested):
    with pytest.raises(AssertionError, match="grad is enabled and at least one of query"):
        attention(nested, nested, nested)


def test_merged_masks_are_of_each_head(attention):
    query, rows = torch.zeros(2, 3, 8), torch.zeros(3, 3)
    merged, kind = attention.merge_masks(rows, None, query)
    assert merged.shape == (2, 2, 3, 3) and kind == 2
    assert attention.merge_masks(None, torch.zeros(2, 3), query)[1] == 1
    assert attention.merge_masks(None, None, query) == (None, None)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from([2, 4]),
       st.booleans())
def test_padding_and_nesting_are_the_same(lengths, heads, need_weights):
    """A nested tensor gives what masked padding gives, without the padding."""
    torch.manual_seed(1)
    attention = nn.MultiheadAttention(8, heads, batch_first=True).eval()
    nested = torch.nested.nested_tensor([torch.randn(n, 8) for n in lengths])
    padded = nested.to_padded_tensor(0.0)
    padding = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad():
        result, weights = attention(nested, nested, nested, need_weights=need_weights)
        expected, all_weights = attention(padded, padded, padded, key_padding_mask=padding,
                                          need_weights=need_weights)
    for i, (part, n) in enumerate(zip(result.unbind(), lengths)):
        torch.testing.assert_close(part, expected[i, :n])
        if need_weights:
            torch.testing.assert_close(weights[i, :n], all_weights[i, :n])


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"average_attn_weights": False}])
@pytest.mark.parametrize("length, batch", [(0, 2), (3, 0), (0, 0)])
def test_no_queries_and_no_batch(length, batch, options):
    attention = nn.MultiheadAttention(4, 2)
    query, key = torch.rand(length, batch, 4), torch.rand(5, batch, 4)
    result, weights = attention(query, key, key, **options)
    assert result.shape == (length, batch, 4)
    if "need_weights" not in options:
        heads = (2,) * ("average_attn_weights" in options)
        assert weights.shape == (batch, *heads, length, 5)
