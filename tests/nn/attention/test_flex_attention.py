"""`flex_attention` against attention written out, and masks by blocks against their functions."""
import pytest

import flambeau as torch
from flambeau.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

F = torch.nn.functional


def causal(b, h, q, kv):
    return q >= kv


def near(b, h, q, kv):
    return (q - kv).abs() < 2 + b


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return [torch.randn(2, 4, n, e, dtype=torch.float64, requires_grad=True)
            for n, e in ((5, 8), (6, 8), (6, 3))]


def test_masked_attention_is_that_of_a_mask(qkv):
    q, k, v = qkv
    block = create_block_mask(near, 2, None, 5, 6, BLOCK_SIZE=2)
    expected = F.scaled_dot_product_attention(q, k, v, create_mask(near, 2, None, 5, 6))
    torch.testing.assert_close(flex_attention(q, k, v, block_mask=block), expected)


def test_scores_are_changed_one_by_one_and_have_gradients(qkv):
    bias = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)

    def attend(q, k, v, bias):
        return flex_attention(q, k, v, lambda score, b, h, i, j: score + bias[i, j] * (h + 1))

    heads = torch.arange(1, 5, dtype=torch.float64).view(4, 1, 1)
    torch.testing.assert_close(attend(*qkv, bias), F.scaled_dot_product_attention(
        *qkv, bias * heads))
    assert torch.autograd.gradcheck(attend, (*qkv, bias), fast_mode=True)


def test_heads_of_keys_that_serve_several(qkv):
    q, k, v = qkv
    few = flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    many = flex_attention(q, k[:, :2].repeat_interleave(2, 1), v[:, :2].repeat_interleave(2, 1))
    assert torch.equal(few, many)


def test_what_else_it_gives(qkv):
    q, k, v = qkv
    scores = q @ k.mT * 0.3
    _, lse = flex_attention(q, k, v, scale=0.3, return_lse=True)
    torch.testing.assert_close(lse, scores.logsumexp(-1))
    _, aux = flex_attention(q, k, v, scale=0.3, return_aux=AuxRequest(max_scores=True))
    assert aux.lse is None
    torch.testing.assert_close(aux.max_scores, scores.amax(-1))


def test_a_query_that_attends_to_nothing_gives_zero(qkv):
    never = create_block_mask(lambda b, h, q, kv: q < 0, None, None, 5, 6)
    out, lse = flex_attention(*qkv, block_mask=never, return_lse=True)
    assert (out == 0).all() and (lse == -torch.inf).all()


def test_masks_combine():
    both = create_mask(and_masks(causal, near), 1, None, 4, 4)
    either = create_mask(or_masks(causal, near), 1, None, 4, 4)
    a, b = (create_mask(mask, 1, None, 4, 4) for mask in (causal, near))
    assert torch.equal(both, a & b) and torch.equal(either, a | b)
    assert create_mask(noop_mask, None, None, 2, 3).all()
    with pytest.raises(RuntimeError, match="callable"):
        and_masks(causal, 3)


def test_blocks_of_a_mask():
    mask = create_block_mask(causal, None, None, 300, 300)
    assert mask.shape == (1, 1, 300, 300) and mask.seq_lengths == (300, 300)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    # as PyTorch gives them: blocks wholly inside are apart from those inside in part
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.q_indices.tolist() == [[[[0, 2, 1], [1, 2, 0], [2, 0, 1]]]]
    assert "sparsity=-9.23%" in repr(mask)
    together = create_block_mask(causal, None, None, 300, 300, separate_full_blocks=False)
    assert together.full_kv_num_blocks is None
    assert torch.equal(together.to_dense(), mask.to_dense())


def test_pictures_of_masks():
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 6, 8, 8, BLOCK_SIZE=4)
    assert str(mask[:, :2]) == ("BlockMask(shape=(1, 2, 8, 8), sparsity=25.00%, \n"
                                "(0, 0)\n██  \n████\n\n(0, 1)\n██  \n████\n)")
    assert mask.to_string((1, 1), 1) == ("(0, 0)\n░░\n\n...\nTo print out more, set "
                                         "BlockMask.to_string(limit=N)\nYou can also index "
                                         "(BlockMask[batch, head]) to choose a specific batch or "
                                         "head")
    assert mask.to_string(-1, 6).count("██  \n████\n") == 6


def test_refusals(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(NotImplementedError, match="4D"):
        flex_attention(q[0], k, v)
    with pytest.raises(ValueError, match="same dtype"):
        flex_attention(q, k.float(), v)
