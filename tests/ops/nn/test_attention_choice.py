"""Which way to compute attention is chosen."""
import pytest

import flambeau
from flambeau.nn.attention import SDPBackend, sdpa_kernel


def shaped(heads=2, queries=3, width=4, batch=1):
    return flambeau.zeros(batch, heads, queries, width)


@pytest.mark.parametrize(("other", "options", "choice"), [
    (shaped(queries=5), {}, 1), (shaped(), {"dropout_p": 0.5}, 0), (shaped(heads=1), {}, 0),
    (shaped(heads=1), {"enable_gqa": True}, 1), (shaped(queries=0), {}, 0),
    (shaped(width=5), {}, 0), (shaped().double(), {}, 0), (shaped().mT, {}, 0),
    (shaped(), {"attn_mask": flambeau.zeros(3, 1)}, 1),
    (shaped(), {"attn_mask": flambeau.zeros(1, 3, 3)}, 0),
    (shaped(), {"attn_mask": flambeau.zeros(3, 3, requires_grad=True)}, 0)])
def test_which_attention_is_chosen(other, options, choice):
    """What PyTorch says of the same tensors."""
    assert flambeau._fused_sdp_choice(shaped(), other, other, **options) == choice
    with sdpa_kernel(SDPBackend.MATH):
        assert flambeau._fused_sdp_choice(shaped(), other, other, **options) == 0
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), pytest.raises(RuntimeError, match="No viab"):
        flambeau._fused_sdp_choice(shaped(), other, other, **options)
