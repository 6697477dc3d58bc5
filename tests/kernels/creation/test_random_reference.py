"""The draws and distributions of the twins: NumPy's twister, moments, and sums in one step."""

from fractions import Fraction

import numpy as np
import pytest

from flambeau.kernels.creation import random_reference as reference


@pytest.fixture
def words():
    made = np.zeros(628, np.uint32)                        # and a normal number that is kept
    reference.seed(made, 1234)
    return made


def test_the_stream_is_that_of_the_mersenne_twister(words):
    expected = np.random.RandomState(1234).randint(0, 2 ** 32, 1500, np.uint64)
    out = np.empty(700, np.uint32)
    for start in (0, 700):                                  # past the end of the first 624 words
        reference.raw(words, out)
        np.testing.assert_array_equal(out, expected[start:start + 700])


def test_sixty_four_bits_are_two_draws_the_upper_half_first(words):
    again, out = words.copy(), np.empty(5, np.uint64)
    reference.raw(words, out)
    halves = np.empty(10, np.uint32)
    reference.raw(again, halves)
    assert out.tolist() == [int(a) << 32 | int(b) for a, b in zip(halves[::2], halves[1::2])]


def test_nothing_is_drawn_for_nothing(words):
    before = words.copy()
    reference.raw(words, np.empty(0, np.uint32))
    np.testing.assert_array_equal(words[:624], before[:624])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_numbers_stay_below_the_upper_end(words, dtype):
    out = np.empty(4000, dtype)
    reference.uniform(words, out, -1.0, 3.0)
    assert out.min() >= -1 and out.max() < 3
    assert abs(out.mean() - 1) < 4 * (4 / 12 ** 0.5) / 4000 ** 0.5


def test_permutations_have_each_number_once(words):
    out = np.empty(50, np.int64)
    reference.permutation(words, out)
    assert sorted(out.tolist()) == list(range(50)) != out.tolist()


@pytest.mark.parametrize("name, arguments, mean, variance", [
    ("poisson", (0.7,), 0.7, 0.7), ("poisson", (35.0,), 35.0, 35.0),
    ("binomial", (12.0, 0.3), 3.6, 2.52), ("binomial", (400.0, 0.6), 240.0, 96.0),
    ("gamma", (0.4,), 0.4, 0.4), ("gamma", (6.0,), 6.0, 6.0),
])
def test_means_and_variances(words, name, arguments, mean, variance):
    count = 3000
    out = np.empty(count)
    getattr(reference, name)(words, out, *[np.full(count, a) for a in arguments])
    assert abs(out.mean() - mean) < 5 * (variance / count) ** 0.5
    assert abs(out.var() / variance - 1) < 0.25


def test_products_and_sums_round_once():
    generator = np.random.default_rng(3)
    a, b, c = generator.standard_normal((3, 200))
    c[:100] = -(a * b)[:100]                                # all but the rounding error cancels
    found = reference._fma(a, b, c)
    expected = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c)]
    np.testing.assert_array_equal(found, expected)
