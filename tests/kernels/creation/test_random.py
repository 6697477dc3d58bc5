"""The random kernels, native and reference, against PyTorch's recorded streams, bit for bit."""

import hashlib
import json
import math
import platform
import warnings
from pathlib import Path

import numpy as np
import pytest

from flambeau import kernels
from flambeau.kernels.creation import random, random_reference

RECORD = json.loads((Path(__file__).parents[2] / "data" / "random_streams.json").read_text())
# logarithms and their like are the C library's: elsewhere the last bit may differ
EXACT = platform.libc_ver()[0] == "glibc"


def dtype_of(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


def digest(array):
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).hexdigest()


@pytest.fixture(params=["native", "reference"], autouse=True)
def which(request, monkeypatch):
    """Run each test on the native kernels and on their twins."""
    if request.param == "native" and not kernels.native_available:
        pytest.skip("no native kernels")
    if request.param == "reference":
        for name in NAMES:
            twin = kernels.quiet(getattr(random_reference, name))
            monkeypatch.setattr(random, "_" + name, twin)
    return request.param


NAMES = [name for name in vars(random_reference) if hasattr(random, "_" + name)
         and callable(getattr(random_reference, name))]  # fmt: skip


def check(result, stream, case):
    shown = result.view(np.int16) if case.get("dtype") == "bfloat16" else result
    first = np.ascontiguousarray(shown).reshape(-1)[:3].tolist()
    if EXACT:
        assert digest(result) == case["digest"], (case, first)
    else:
        np.testing.assert_allclose(first, case["first"], rtol=1e-6)
    assert digest(stream.get_state()) == case["state"], case


def empty(case):
    n, dtype = case["n"], dtype_of(case["dtype"])
    if case["layout"] == "strided":
        return np.empty((n, 2), dtype)[:, 1]
    if case["layout"] == "transposed":
        return np.empty((2, n // 2), dtype).T
    return np.empty(n, dtype)


def fill(stream, out, call, args):
    if call == "random_":
        if args and args[1] is not None:
            return random.integers(stream, out, *args)
        return random.random(stream, out, *args[:1])
    return getattr(random, call[:-1])(stream, out, *args)


@pytest.mark.parametrize("call", sorted({case["call"] for case in RECORD["fills"]}))
def test_fills(call):
    for case in RECORD["fills"]:
        if case["call"] == call:
            stream = random.Stream(case["seed"])
            random.normal(stream, np.empty(case["n"] % 3))
            result = fill(stream, empty(case), call, case["args"])
            check(result, stream, case)


def sample(stream, case):
    call, n = case["call"], case["n"]
    if call == "permutation":
        return random.permutation(stream, n)
    dtype = dtype_of(case["dtype"])
    if call in ("poisson", "standard_gamma"):
        return getattr(random, call)(stream, np.full(n, case["parameter"], dtype))
    if call == "binomial":
        return random.binomial(
            stream, np.full(n, case["count"], dtype), np.full(n, case["p"], dtype)
        )
    if call == "multinomial":
        weights = (1 + np.arange(4 * case["columns"]) % 13).reshape(4, -1).astype(dtype)
        return random.multinomial(stream, weights, n, case["replacement"])
    if call == "bernoulli_each":
        p = np.linspace(0, 1, n).astype(dtype)
        return random.bernoulli_each(stream, np.empty(n, dtype), p)
    return random.rrelu_slopes(stream, np.linspace(-1, 1, n, dtype=dtype), 1 / 8, 1 / 3)


@pytest.mark.parametrize("call", sorted({case["call"] for case in RECORD["samplers"]}))
def test_samplers(call):
    for case in RECORD["samplers"]:
        if case["call"] == call:
            stream = random.Stream(case["seed"])
            check(sample(stream, case), stream, case)


def test_states():
    for case in RECORD["states"]:
        stream = random.Stream(case["seed"])
        random.uniform(stream, np.empty(case["draws"], np.float32))
        if case["draws"] % 2:
            random.normal(stream, np.empty(1))
        state = stream.get_state()
        assert state.shape == (5056,) and state.dtype == np.uint8
        assert digest(state) == case["state"]
        other = random.Stream(9)
        other.set_state(state)
        assert other.initial_seed() == case["seed"]
        assert digest(other.get_state()) == case["state"]
        for source in (stream, other):
            assert random.random(source, np.empty(4, np.int64)).tolist() == case["next"]


def test_raw_bits():
    expected = np.random.RandomState(7).randint(0, 2**32, 3000, dtype=np.uint32)
    np.testing.assert_array_equal(random.Stream(7).raw32(3000), expected)
    pairs = expected.astype(np.uint64)
    np.testing.assert_array_equal(random.Stream(7).raw64(1500), pairs[::2] << 32 | pairs[1::2])


def test_draws_do_not_depend_on_how_they_are_divided():
    whole = random.uniform(random.Stream(1), np.empty(5000, np.float32))
    stream = random.Stream(1)
    parts = [random.uniform(stream, np.empty(n, np.float32)) for n in (1, 2, 620, 1, 0, 4376)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_copy_goes_its_own_way():
    stream = random.Stream(1)
    random.normal(stream, np.empty(3))
    twin = stream.copy()
    ours = random.normal(stream, np.empty(5))
    random.uniform(stream, np.empty(100))
    np.testing.assert_array_equal(random.normal(twin, np.empty(5)), ours)


@pytest.mark.parametrize("n", [15, 20000])
def test_moments(n):
    for seed in range(3):
        stream = random.Stream(seed)
        draws = [random.normal(stream, np.empty(n, np.float32), 3, 2) for _ in range(60000 // n)]
        numbers = np.concatenate(draws).astype(np.float64)
        assert abs(numbers.mean() - 3) < 0.05
        assert abs(numbers.std() - 2) < 0.05
        assert abs(((numbers - 3) ** 4).mean() / 16 - 3) < 0.2


def test_memory_order():
    flat = random.uniform(random.Stream(1), np.empty(24))
    out = np.empty((4, 2, 3)).transpose(2, 0, 1)
    random.uniform(random.Stream(1), out)
    np.testing.assert_array_equal(out.transpose(1, 2, 0).ravel(), flat)


def test_dirichlet_lies_on_the_simplex():
    alpha = np.array([[0.5, 1.0, 3.0], [1e-3, 1e-3, 1e-3]])
    stream = random.Stream(1)
    points = np.stack([random.dirichlet(stream, alpha) for _ in range(300)])
    np.testing.assert_allclose(points.sum(-1), 1, rtol=1e-12)
    assert (points > 0).all() and (points < 1).all()
    np.testing.assert_allclose(points[:, 0].mean(0), alpha[0] / alpha[0].sum(), atol=0.05)


def test_multinomial_without_replacement_is_without():
    weights = np.arange(1.0, 8.0, dtype=np.float32)
    for seed in range(20):
        drawn = random.multinomial(random.Stream(seed), weights, 7)
        assert sorted(drawn.tolist()) == list(range(7))


def test_zero_dimensional_and_empty():
    stream = random.Stream(1)
    for shape in ((), (0,), (2, 0)):
        for function in (random.uniform, random.normal, random.bernoulli, random.exponential):
            assert function(stream, np.empty(shape)).shape == shape
        assert random.poisson(stream, np.ones(shape)).shape == shape
        assert random.bernoulli_each(stream, np.empty(shape), np.ones(shape)).shape == shape


def test_no_warning_leaves_a_kernel():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        random.cauchy(random.Stream(0), np.empty(3000, np.float16), 0, 1e30)
        random.log_normal(random.Stream(0), np.empty(3000, np.float16), 0, 900)
        random.multinomial(random.Stream(0), np.zeros(4, np.float32), 2)


def test_permutations_are_permutations():
    counts = np.zeros((4, 4))
    stream = random.Stream(3)
    for _ in range(2000):
        counts[np.arange(4), random.permutation(stream, 4)] += 1
    assert (abs(counts / 2000 - 0.25) < 0.05).all()


def test_rounded_once():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 2000))
    from fractions import Fraction

    exact = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c)]
    np.testing.assert_array_equal(random_reference._fma(a, b, c), exact)
    a, b = a.astype(np.float32), b.astype(np.float32)
    c = (-a.astype(float) * b).astype(np.float32)  # the sum is what rounding took from the product
    exact = [np.float32(float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))))
             for x, y, z in zip(a, b, c)]  # fmt: skip
    np.testing.assert_array_equal(random_reference._fma(a, b, c), exact)
    half = np.float32(1 + 2**-23)  # a tie in float64 arithmetic, broken by bits below
    x, tiny = np.full(1, half), np.full(1, np.float32(2**-80))
    assert random_reference._fma(x, x, tiny) == np.float32(1 + 2**-22)


def test_native_and_reference_take_the_same_arguments(which):
    if which == "native":
        words, numbers = random.Stream(0).words, np.empty(20)
        with pytest.raises(TypeError):
            random._uniform(words, numbers)
        with pytest.raises(ValueError):
            random._normal_blocks(words, numbers[:15].copy(), 0.0, 1.0)
        with pytest.raises((BufferError, ValueError)):
            random._uniform(words, numbers[::2], 0.0, 1.0)
    assert math.isfinite(random.normal(random.Stream(0), np.empty(1))[0])
