"""Connectionist temporal classification: the forward-backward algorithm over all alignments.

An alignment walks through the targets with blanks before, between and after them: from each state
it stays, goes on by one, or skips a blank between two different targets (A. Graves et al., 2006).
"""
import numpy as np

from flambeau.kernels.declaration import kernel


def extended(targets, blank):
    """The states' labels (n, 2 s + 1), and in which states the one before may be skipped."""
    n, s = targets.shape
    states = np.full((n, 2 * s + 1), blank, np.int64)
    states[:, 1::2] = targets
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, skips


def end_mask(shape, lengths):
    """The states in which an alignment may end: the last target and the blank after it."""
    last = 2 * np.asarray(lengths)[:, None]
    at = np.arange(shape[1])
    return (at == last) | (at == last - 1)


@kernel
def ctc_loss(x, targets, inputs, lengths, blank):
    """Losses (n,) for log-probabilities `x` (t, n, c); the log-probabilities of all prefixes."""
    states, skips = extended(targets, blank)
    steps, n, _ = x.shape
    alphas = np.full((max(steps, 1), *states.shape), -np.inf, x.dtype)
    emitted = _emitted(x, states)
    if steps:
        alphas[0, :, :2] = emitted[0, :, :2]
    for t in range(1, steps):
        alphas[t] = _advance(alphas[t - 1], skips) + emitted[t]
    last = alphas[np.asarray(inputs, np.int64) - 1, np.arange(n)]
    ends = np.where(end_mask(states.shape, lengths), last, -np.inf)
    losses = -_logsumexp(ends)
    empty = np.asarray(inputs) == 0
    losses[empty] = np.where(np.asarray(lengths)[empty] == 0, 0, np.inf)
    return losses.astype(x.dtype), alphas


@kernel
def ctc_loss_backward(g, x, losses, alphas, targets, inputs, lengths, blank):
    """Gradient in x: exp(x) less the probability of emitting that label then, given the targets."""
    states, skips = extended(targets, blank)
    steps = len(x)
    emitted, inputs = _emitted(x, states), np.asarray(inputs)
    ends = end_mask(states.shape, lengths)
    result = np.exp(x)
    ahead = np.zeros(skips.shape, bool)
    ahead[:, :-2] = skips[:, 2:]
    beta = np.full(states.shape, -np.inf, x.dtype)
    for t in range(steps - 1, -1, -1):
        onward = beta if t == steps - 1 else _retreat(beta, ahead)
        beta = np.where((inputs == t + 1)[:, None], np.where(ends, 0, -np.inf), onward) + emitted[t]
        both = np.exp(alphas[t] + beta - emitted[t] + losses[:, None])
        both[~np.isfinite(both)] = 0
        for row, labels, share in zip(result[t], states, both):
            np.subtract.at(row, labels, share)
    result[np.arange(steps)[:, None] >= inputs] = 0
    result = result * g[None, :, None]
    result[:, np.isinf(losses)] = np.where(g[np.isinf(losses)] == 0, 0, np.nan)[None, :, None]
    return result.astype(x.dtype)


def _emitted(x, states):
    return np.take_along_axis(x, np.broadcast_to(states, (len(x), *states.shape)), 2)


def _advance(alpha, skips):
    """log of the sum over the states that lead to each."""
    one, two = np.full_like(alpha, -np.inf), np.full_like(alpha, -np.inf)
    one[:, 1:] = alpha[:, :-1]
    two[:, 2:] = alpha[:, :-2]
    return _logsumexp(np.stack([alpha, one, np.where(skips, two, -np.inf)], -1))


def _retreat(beta, ahead):
    """log of the sum over the states that each leads to."""
    one, two = np.full_like(beta, -np.inf), np.full_like(beta, -np.inf)
    one[:, :-1] = beta[:, 1:]
    two[:, :-2] = beta[:, 2:]
    return _logsumexp(np.stack([beta, one, np.where(ahead, two, -np.inf)], -1))


def _logsumexp(values):
    largest = values.max(-1, initial=-np.inf)
    shift = np.where(np.isinf(largest), 0, largest)
    return np.log(np.exp(values - shift[..., None]).sum(-1)) + shift
