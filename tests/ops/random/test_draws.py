"""Random ops against PyTorch's recorded results, under autograd, vmap and no device."""

import copy
import json
import math
import pickle
import platform
import warnings
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau.transforms.batching import BatchLevel

RECORD = json.loads((Path(__file__).parents[2] / "data" / "random_ops.json").read_text())
EXACT = platform.libc_ver()[0] == "glibc"


def evaluate(expression):
    names = {
        "torch": flambeau,
        "g": flambeau.Generator().manual_seed(9),
        "x": flambeau.ones(2, requires_grad=True),
        "v": flambeau.arange(1.0, 7).view(2, 3),
    }
    flambeau.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return eval(expression, names)


@pytest.mark.parametrize("case", RECORD, ids=lambda case: case["call"])
def test_recorded(case):
    if "raises" in case:
        with pytest.raises(Exception) as error:
            evaluate(case["call"])
        assert type(error.value).__name__ == case["raises"]
        if "received an invalid combination" not in case["message"]:
            assert str(error.value).startswith(case["message"][:45])
        return
    value = evaluate(case["call"])
    if "dtype" not in case:
        assert value == case["value"]
        return
    assert str(value.dtype) == case["dtype"]
    assert list(value.stride()) == case["stride"]
    assert value.requires_grad == case["requires_grad"]
    array = value.detach()._array
    if array.dtype.kind == "c":
        array = np.stack((array.real, array.imag), -1)
    if EXACT and "dirichlet" not in case["call"]:
        np.testing.assert_array_equal(array.astype(np.float64), case["value"])
    else:
        np.testing.assert_allclose(array.astype(np.float64), case["value"], rtol=1e-6)


# ---- generators ----------------------------------------------------------------------------------


def test_generators_are_independent():
    a, b = flambeau.Generator().manual_seed(1), flambeau.Generator().manual_seed(1)
    first = flambeau.rand(5, generator=a)
    flambeau.rand(5)
    assert (flambeau.rand(5, generator=b) == first).all()
    assert a.device == flambeau.device("cpu")


@pytest.mark.parametrize("copied", [
    copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g)),
    flambeau.Generator.clone_state,
])  # fmt: skip
def test_copies_of_generators(copied):
    generator = flambeau.Generator().manual_seed(3)
    flambeau.randn(3, generator=generator)
    twin = copied(generator)
    expected = flambeau.randn(3, generator=generator)
    assert (flambeau.randn(3, generator=twin) == expected).all()
    assert twin.initial_seed() == 3


def test_state_of_the_default_generator():
    flambeau.manual_seed(5)
    flambeau.randn(7)
    state = flambeau.get_rng_state()
    assert state.dtype is flambeau.uint8 and state.shape == (5056,)
    first = flambeau.randn(40)
    flambeau.set_rng_state(state)
    assert (flambeau.randn(40) == first).all()
    with flambeau.random.fork_rng():
        flambeau.manual_seed(8)
    assert flambeau.initial_seed() == 5
    with flambeau.random.fork_rng(enabled=False):
        flambeau.manual_seed(8)
    assert flambeau.initial_seed() == 8


def test_seed_is_random():
    generator = flambeau.Generator()
    seeds = {generator.seed() for _ in range(4)}
    assert len(seeds) == 4 and generator.initial_seed() in seeds


# ---- autograd ------------------------------------------------------------------------------------


def test_filling_cuts_the_graph():
    x = flambeau.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_filling_counts_as_a_write():
    x = flambeau.ones(3, requires_grad=True)
    y = x * x
    z = (y * y).sum()
    y.normal_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_filling_part_of_a_tensor():
    x = flambeau.ones(4, requires_grad=True)
    y = x * 2
    y[:2].bernoulli_(0.5)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 2]


def test_leaves_are_filled_without_grad():
    x = flambeau.ones(4, requires_grad=True)
    with flambeau.no_grad():
        x.uniform_(3, 4)
    assert x.requires_grad and (x >= 3).all()


def test_samples_have_zero_gradients():
    x = flambeau.full((4,), 0.5, requires_grad=True)
    for sample in (flambeau.bernoulli(x), flambeau.poisson(x), flambeau.normal(x, x),
                   flambeau.binomial(x * 4, x)):  # fmt: skip
        (grad,) = flambeau.autograd.grad(sample.sum(), x)
        assert grad.tolist() == [0, 0, 0, 0]


def test_dropout_gradient_is_the_mask():
    x = flambeau.rand(50, requires_grad=True)
    flambeau.manual_seed(2)
    y = flambeau.dropout(x, 0.3, True)
    y.sum().backward()
    assert (y == x * x.grad).all()
    assert set(x.grad.tolist()) <= {0.0, float(np.float32(1) / np.float32(0.7))}


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0, 20.0, 300.0])
def test_gamma_samples_move_with_their_shape(alpha):
    mpmath = pytest.importorskip("mpmath")
    a = flambeau.full((3,), alpha, dtype=flambeau.float64, requires_grad=True)
    flambeau.manual_seed(0)
    x = flambeau._standard_gamma(a)
    x.sum().backward()
    for sample, grad in zip(x.tolist(), a.grad.tolist()):
        cdf = lambda a, x=sample: mpmath.gammainc(a, 0, x, regularized=True)
        density = mpmath.mpf(sample) ** (alpha - 1) * mpmath.exp(-sample) / mpmath.gamma(alpha)
        assert grad == pytest.approx(float(-mpmath.diff(cdf, alpha) / density), rel=1e-8)


@pytest.mark.parametrize("alpha, x", [(0.01, 0.5), (0.7, 2.5), (1.0, 35.0), (3.0, 0.1), (4.0, 5.0)])
def test_the_motion_of_gamma_samples_has_derivatives(alpha, x):
    """Also far out in the tail, where a power series would cancel."""
    point = tuple(flambeau.tensor([v], dtype=flambeau.float64, requires_grad=True)
                  for v in (alpha, x))
    moves = flambeau._standard_gamma_grad
    assert flambeau.autograd.gradcheck(moves, point, eps=1e-7, check_forward_ad=True,
                                       check_batched_grad=True)
    assert flambeau.autograd.gradgradcheck(moves, point, eps=1e-7, check_fwd_over_rev=True)


def test_dirichlet_samples_move_as_those_of_the_distribution():
    alpha = flambeau.tensor([0.5, 2.0, 3.0], dtype=flambeau.float64, requires_grad=True)
    found = []
    for draw in (flambeau._sample_dirichlet,
                 lambda a: flambeau.distributions.Dirichlet(a).rsample()):
        flambeau.manual_seed(3)
        found += flambeau.autograd.grad((draw(alpha) * flambeau.arange(3)).sum(), alpha)
    flambeau.testing.assert_close(*found)
    assert found[0].any()


@pytest.mark.parametrize("a, b", [(0.3, 0.7), (2.0, 5.0), (30.0, 2.0)])
def test_beta_samples_move_with_their_parameter(a, b):
    mpmath = pytest.importorskip("mpmath")
    for x in (0.1, 0.5, 0.9):
        args = [flambeau.tensor([value], dtype=flambeau.float64) for value in (x, a, a + b)]
        slope = -mpmath.diff(lambda q, x=x: mpmath.betainc(q, b, 0, x, regularized=True), a)
        density = mpmath.mpf(x) ** (a - 1) * mpmath.mpf(1 - x) ** (b - 1) / mpmath.beta(a, b)
        expected = float(slope / density / (1 - x))
        assert flambeau._dirichlet_grad(*args).item() == pytest.approx(expected, rel=1e-9)


# ---- vmap ----------------------------------------------------------------------------------------


def vmapped(function, randomness, x):
    level = BatchLevel(x.shape[0], randomness)
    with level:
        result = function(level.wrap(x, 0))
    value, bdim = level.unwrap(result)
    return value if bdim is not None else value.expand(x.shape[0], *value.shape)


DRAWS = {
    "rand": lambda x: x * 0 + flambeau.rand(2),
    "randn": lambda x: flambeau.randn(2),
    "rand_like": lambda x: flambeau.rand_like(x),
    "uniform_": lambda x: x.clone().uniform_(),
    "randperm": lambda x: flambeau.randperm(3),
    "randint": lambda x: flambeau.randint(50, (2,)),
    "normal": lambda x: flambeau.normal(0.0, 1.0, (2,)),
    "dropout": lambda x: flambeau.dropout(x + 1, 0.5, True),
    "bernoulli scalar": lambda x: flambeau.bernoulli(x, 0.5),
}
SAMPLES = {
    "bernoulli": lambda x: flambeau.bernoulli(x + 0.5),
    "poisson": lambda x: flambeau.poisson(x + 3),
    "multinomial": lambda x: flambeau.multinomial(x + 1, 1),
    "normal": lambda x: flambeau.normal(x, 1.0),
    "gamma": lambda x: flambeau._standard_gamma(x + 1),
    "rrelu": lambda x: flambeau.nn.functional.rrelu(x - flambeau.ones(2), training=True),
}


@pytest.mark.parametrize("name", [*DRAWS, *SAMPLES])
def test_vmap_refuses_randomness(name):
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmapped((DRAWS | SAMPLES)[name], "error", flambeau.zeros(3, 2))


@pytest.mark.parametrize("name", DRAWS)
def test_vmap_same_and_different(name):
    x, draw = flambeau.zeros(3, 2), DRAWS[name]
    flambeau.manual_seed(1)
    once = draw(flambeau.zeros(2))
    flambeau.manual_seed(1)
    same = vmapped(draw, "same", x)
    assert all((row == once).all() for row in same)
    flambeau.manual_seed(1)
    different = vmapped(draw, "different", x)
    assert different.shape == same.shape
    if name in ("rand", "rand_like", "uniform_", "randint", "randperm"):
        flambeau.manual_seed(1)
        each = [draw(flambeau.zeros(2)) for _ in range(3)]
        assert all((row == one).all() for row, one in zip(different, each))


@pytest.mark.parametrize("name", SAMPLES)
def test_vmap_of_samples(name):
    x, draw = flambeau.zeros(3, 2), SAMPLES[name]
    flambeau.manual_seed(1)
    found = vmapped(draw, "different", x)
    flambeau.manual_seed(1)
    assert (found == draw(x)).all()
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmapped(draw, "same", x)


def test_vmap_in_place_on_what_is_not_batched():
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmapped(lambda x: x + flambeau.empty(2).uniform_(), "different", flambeau.zeros(3, 2))
    assert vmapped(lambda x: x + flambeau.empty(2).uniform_(), "same", flambeau.zeros(3, 2)).ndim


def test_nested_vmap():
    x = flambeau.zeros(3, 2, 4)

    def inner(row):
        return vmapped(lambda one: one + flambeau.rand(4), "different", row)

    flambeau.manual_seed(1)
    outer = vmapped(inner, "different", x)
    assert outer.shape == (3, 2, 4) and outer.unique().numel() == 24 if hasattr(outer, "unique") \
        else len(set(outer.reshape(-1).tolist())) == 24  # fmt: skip
    same = vmapped(inner, "same", x)
    assert (same[0] == same[1]).all() and len(set(same.reshape(-1).tolist())) == 8


# ---- the rest ------------------------------------------------------------------------------------


def test_nothing_is_drawn_on_meta():
    flambeau.manual_seed(1)
    before = flambeau.get_rng_state()
    meta = flambeau.zeros(2, 3, device="meta")
    results = [
        flambeau.rand(2, 3, device="meta"), flambeau.rand_like(meta), meta.uniform_(),
        flambeau.bernoulli(meta), flambeau.poisson(meta), flambeau.normal(meta, 1.0),
        flambeau.dropout(meta, 0.5, True), flambeau._standard_gamma(meta),
    ]  # fmt: skip
    assert all(r.is_meta and r.shape == (2, 3) for r in results)
    assert flambeau.multinomial(meta, 2).shape == (2, 2)
    assert (flambeau.get_rng_state() == before).all()


def test_default_dtype():
    flambeau.set_default_dtype(flambeau.float64)
    try:
        assert flambeau.rand(2).dtype is flambeau.randn(2).dtype is flambeau.float64
        assert flambeau.normal(0.0, 1.0, (2,)).dtype is flambeau.float64
    finally:
        flambeau.set_default_dtype(flambeau.float32)


def test_alpha_dropout_keeps_mean_and_variance():
    flambeau.manual_seed(0)
    x = flambeau.randn(100_000)
    y = flambeau.alpha_dropout(x, 0.3, True)
    values = y._array.astype(np.float64)
    assert abs(values.mean()) < 0.02 and abs(values.var() - 1) < 0.02


def test_dropout_scale():
    flambeau.manual_seed(0)
    y = flambeau.dropout(flambeau.ones(100_000), 0.2, True)._array
    assert abs((y == 0).mean() - 0.2) < 0.01
    assert y.max() == pytest.approx(1.25)


def test_channels_are_dropped_whole():
    flambeau.manual_seed(0)
    y = flambeau.feature_dropout(flambeau.ones(8, 16, 3, 5), 0.5, True)._array
    assert ((y == y[:, :, :1, :1]).all()) and 0 < (y == 0).mean() < 1
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        flambeau.dropout(flambeau.ones(2), math.nan, True)


def test_precision_warning():
    with pytest.warns(UserWarning, match="out of bounds"):
        flambeau.empty(3).random_(0, 2**25)
