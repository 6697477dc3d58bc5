"""Scaled dot-product attention by blocks of queries: the matrix of all scores is never kept.

What the gradient needs of the scores is their logsumexp, one number a query; the scores themselves
are computed again (T. Dao et al., FlashAttention, 2022).
"""

import math

import numpy as np

from flambeau.kernels.declaration import kernel, kernel_with_float32_results

_BLOCK = 128


@kernel_with_float32_results(1)
def scaled_dot_product_attention(q, k, v, mask=None, is_causal=False, scale=None):
    """softmax(scale * q @ k.T + mask) @ v, and the logsumexp of each query's scores.

    q (..., l, e), k (..., s, e), v (..., s, d); `mask` broadcasts to (..., l, s): a boolean one
    says what takes part, another is added. A query with nothing to attend to has result 0.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    out = np.empty((*lead, q.shape[-2], v.shape[-1]), q.dtype)
    total = np.empty((*lead, q.shape[-2]), q.dtype)
    for rows in _blocks(q.shape[-2]):
        scores = _scores(q, k, mask, is_causal, scale, rows)
        largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
        norm = weights.sum(axis=-1, keepdims=True)
        out[..., rows, :] = np.matmul(weights, v) / np.where(norm == 0, 1, norm)
        total[..., rows] = (np.log(norm) + largest)[..., 0]
    return out, total


@kernel
def scaled_dot_product_attention_backward(g, q, k, v, out, total, mask=None, is_causal=False,
                                          scale=None):
    """Gradients of attention in q, k and v, from its two results; all of one leading shape."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    gq, gk, gv = np.empty(q.shape, q.dtype), np.zeros(k.shape, k.dtype), np.zeros(v.shape, v.dtype)
    for rows in _blocks(q.shape[-2]):
        norm = total[..., rows, None]
        weights = np.exp(
            _scores(q, k, mask, is_causal, scale, rows) - np.where(np.isneginf(norm), 0, norm))
        g_rows = g[..., rows, :]
        gv += np.matmul(weights.swapaxes(-1, -2), g_rows)
        g_weights = np.matmul(g_rows, v.swapaxes(-1, -2))
        delta = (g_rows * out[..., rows, :]).sum(axis=-1, keepdims=True)
        g_scores = weights * (g_weights - delta) * q.dtype.type(scale)
        gq[..., rows, :] = np.matmul(g_scores, k)
        gk += np.matmul(g_scores.swapaxes(-1, -2), q[..., rows, :])
    return gq, gk, gv


def attention_gradients(g, *given):
    """Those gradients as PyTorch lays them out: of four dimensions position by position, then all
    heads; else the keys', as the transpose of a product of several matrices, by columns."""
    gq, gk, gv = scaled_dot_product_attention_backward(g, *given)
    if g.ndim == 4:
        return _swapped(gq, 1, 2), _swapped(gk, 1, 2), _swapped(gv, 1, 2)
    return gq, _swapped(gk, -2, -1) if g.ndim > 2 else gk, gv


def _swapped(x, a, b):
    """The same values, with two dimensions in the other order in memory."""
    return np.ascontiguousarray(x.swapaxes(a, b)).swapaxes(a, b)


def _blocks(length):
    return [slice(i, min(i + _BLOCK, length)) for i in range(0, length, _BLOCK)]


def _scores(q, k, mask, is_causal, scale, rows):
    scores = np.matmul(q[..., rows, :], k.swapaxes(-1, -2)) * q.dtype.type(scale)
    if is_causal:
        later = np.arange(k.shape[-2]) > np.arange(rows.start, rows.stop)[:, None]
        scores[..., later] = -np.inf
    if mask is not None:
        part = mask[..., rows, :] if mask.ndim > 1 and mask.shape[-2] > 1 else mask
        scores = (np.where(part, scores, scores.dtype.type(-np.inf)) if mask.dtype == bool
                  else scores + part)
    return scores.astype(q.dtype, copy=False)
