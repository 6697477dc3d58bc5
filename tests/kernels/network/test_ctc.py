"""Connectionist temporal classification, against a sum over all paths."""
import itertools

import numpy as np

from flambeau.kernels.network import ctc


def by_paths(log_p, target, blank=0):
    """Minus the logarithm of the probability of all paths that read as `target`."""
    steps, letters = log_p.shape
    total = 0.0
    for path in itertools.product(range(letters), repeat=steps):
        read = [letter for letter, _ in itertools.groupby(path) if letter != blank]
        if read == list(target):
            total += np.exp(sum(log_p[t, letter] for t, letter in enumerate(path)))
    return -np.log(total)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


TARGETS = [[1, 2], [1, 1], [2, 0]]
LENGTHS = np.array([2, 2, 1])


def test_losses_are_sums_over_paths(normal):
    log_p = log_softmax(normal((4, 3, 3)))
    losses = ctc.ctc_loss(log_p, np.array(TARGETS), np.array([4, 4, 3]), LENGTHS, 0)[0]
    expected = [by_paths(log_p[:steps, i], TARGETS[i][:n])
                for i, (steps, n) in enumerate(zip([4, 4, 3], LENGTHS))]
    np.testing.assert_allclose(losses, expected)


def test_slopes(normal, derivative):
    x = log_softmax(normal((4, 3, 3)))
    arguments = np.array(TARGETS), np.array([4, 4, 3]), LENGTHS, 0
    losses, alphas = ctc.ctc_loss(x, *arguments)[:2]
    weights = np.array([1.0, -2.0, 0.5])
    slope = ctc.ctc_loss_backward(weights, x, losses, alphas, *arguments)
    # The slope is that by logits, whose softmax the input is: its rows sum to nothing.
    np.testing.assert_allclose(slope.sum(-1), np.zeros((4, 3)), atol=1e-9)
    logits = x.copy()
    expected = derivative(
        lambda z: (weights * ctc.ctc_loss(log_softmax(z), *arguments)[0]).sum(), logits)
    np.testing.assert_allclose(slope, expected, atol=1e-6)


def test_impossible_targets_have_no_probability():
    log_p = log_softmax(np.zeros((1, 1, 3)))
    loss = ctc.ctc_loss(log_p, np.array([[1, 2]]), np.array([1]), np.array([2]), 0)[0]
    assert np.isinf(loss).all()


def test_blanks_between_letters():
    states = ctc.extended(np.array([[1, 2]]), 0)
    assert np.asarray(states[0] if isinstance(states, tuple) else states)[0].tolist() == [
        0, 1, 0, 2, 0]
