import numpy as np
import pytest

from flambeau.kernels.network.attention import (
    scaled_dot_product_attention as attend,
)
from flambeau.kernels.network.attention import (
    scaled_dot_product_attention_backward as attend_backward,
)


def by_definition(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    p = np.exp(scores)
    return p / p.sum(-1, keepdims=True) @ v, np.log(p.sum(-1))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(5, 5), (40, 50), (150, 7)])
def test_definition(normal, causal, lengths):
    q, k, v = (
        normal((2, 3, lengths[0], 4)),
        normal((2, 3, lengths[1], 4)),
        normal((2, 3, lengths[1], 6)),
    )
    for version in (attend, attend.reference):
        for found, expected in zip(
            version(q, k, v, None, causal), by_definition(q, k, v, None, causal)
        ):
            np.testing.assert_allclose(found, expected)


def test_masks(normal):
    q, k, v = normal((2, 6, 4)), normal((2, 7, 4)), normal((2, 7, 3))
    keep = normal((6, 7)) > -0.5
    for mask in (keep, normal((2, 6, 7)), normal((2, 1, 7)), np.where(keep, 0, -np.inf)):
        expected = by_definition(q, k, v, mask, False, 0.3)
        for found, value in zip(attend(q, k, v, mask, False, 0.3), expected):
            np.testing.assert_allclose(found, value)


def test_shared_heads(normal):
    q, k, v = normal((2, 3, 5, 4)), normal((2, 1, 6, 4)), normal((1, 1, 6, 4))
    np.testing.assert_allclose(attend(q, k, v)[0], by_definition(q, k, v)[0])


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(normal, derivative, causal):
    q, k, v, g = normal((2, 5, 3)), normal((2, 6, 3)), normal((2, 6, 4)), normal((2, 5, 4))
    mask = normal((5, 6))
    found = attend_backward(g, q, k, v, *attend(q, k, v, mask, causal), mask, causal)
    inputs = [q, k, v]
    for i, gradient in enumerate(found):

        def value(x, i=i):
            return np.sum(g * attend(*inputs[:i], x, *inputs[i + 1 :], mask, causal)[0])

        np.testing.assert_allclose(gradient, derivative(value, inputs[i]), rtol=1e-5, atol=1e-7)


def test_nothing_to_attend_to(normal):
    q = normal((1, 5, 4))
    mask = np.ones((5, 5), bool)
    mask[2] = False
    for forward, backward in (
        (attend, attend_backward),
        (attend.reference, attend_backward.reference),
    ):
        out, total = forward(q, q, q, mask)
        assert not out[0, 2].any() and total[0, 2] == -np.inf
        grads = backward(np.ones_like(q), q, q, q, out, total, mask)
        assert all(np.isfinite(g).all() for g in grads) and not grads[0][0, 2].any()


def test_heads_side_by_side(normal):
    """Queries as views of one array, the way a projection leaves them."""
    x = normal((2, 20, 3, 4)).astype(np.float32).transpose(0, 2, 1, 3)
    found = attend(x, x, x)[0]
    np.testing.assert_allclose(found, attend(x.copy(), x.copy(), x.copy())[0], rtol=1e-6)
