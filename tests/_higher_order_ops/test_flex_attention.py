"""Attention with scores of one's own."""
from __future__ import annotations

import math

import flambeau as torch


def test_attention():
    torch.manual_seed(0)
    q, k, v = (torch.rand(1, 2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    op = torch.ops.higher_order.flex_attention

    def bias(score, b, h, m, n):
        return score + (m - n) * 0.1

    def causal(b, h, m, n):
        return m >= n
    scale = 1 / math.sqrt(3)
    out, sums, _ = op(q, k, v, bias, (causal,), scale, {})
    place = torch.arange(4).double()
    scores = q @ k.mT * scale + (place[:, None] - place) * 0.1
    scores = scores.masked_fill(place[:, None] < place, -math.inf)
    torch.testing.assert_close(out, scores.softmax(-1) @ v)
    torch.testing.assert_close(sums * math.log(2), scores.logsumexp(-1))
    wanted = torch.autograd.grad(out.sum(), (q, k, v))
    found = torch.ops.higher_order.flex_attention_backward(
        q, k, v, out, sums, torch.ones_like(out), None, bias, None, (causal,), scale, {})
    for mine, theirs in zip(found, wanted):
        torch.testing.assert_close(mine, theirs)


def test_scores_of_half_types_are_computed_in_float32():
    q = torch.ones(1, 1, 2, 3, dtype=torch.float16)
    op = torch.ops.higher_order.flex_attention
    found = op(q, q, q, lambda score, *place: score, None, 1.0, {})
    assert [x.dtype for x in found] == [torch.float16, torch.float32, torch.float32]
