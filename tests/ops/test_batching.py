"""Ops that vmap takes whole where one might loop: each slice as it would be alone."""
import pytest

import flambeau
from flambeau import func

MAKER = flambeau.Generator().manual_seed(2)
REAL = flambeau.randn(3, 4, 5, dtype=flambeau.double, generator=MAKER)
SQUARE = flambeau.randn(3, 4, 4, dtype=flambeau.double, generator=MAKER)
PLACES = flambeau.randint(0, 20, (3, 6), generator=MAKER)
SOURCE = flambeau.randn(3, 20, dtype=flambeau.double, generator=MAKER)
SIGNAL = flambeau.randn(3, 32, dtype=flambeau.double, generator=MAKER)
WINDOW = flambeau.rand(3, 8, dtype=flambeau.double, generator=MAKER) + 0.5
DEGREES = flambeau.randint(0, 6, (3, 4, 5), generator=MAKER)
CALLS = {
    "histc": (lambda x: flambeau.histc(x, 6, -2, 2), REAL),
    "histc of everything": (lambda x: flambeau.histc(x, 6), REAL),
    "lu_solve": (lambda b, a: flambeau.lu_solve(b, *flambeau.linalg.lu_factor(a)), REAL, SQUARE),
    "linalg.lu_solve": (lambda b, a: flambeau.linalg.lu_solve(
        *flambeau.linalg.lu_factor(a), b), REAL, SQUARE),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m > 0, s), REAL, REAL.flip(0), SOURCE),
    "quantile": (lambda x: flambeau.quantile(x, flambeau.tensor([0.2, 0.7]).double(), 1), REAL),
    "quantile of everything": (lambda x, q: flambeau.quantile(x, q), REAL, WINDOW[:, 0] - 0.5),
    "nanquantile": (lambda x: flambeau.nanquantile(x, 0.3, 0), REAL),
    "take": (lambda x, i: flambeau.take(x, i), REAL, PLACES),
    "put": (lambda x, i, s: x.put(i, s), REAL, PLACES, SOURCE[:, :6]),
    "put, adding": (lambda x, i, s: x.put(i, s, accumulate=True), REAL, PLACES, SOURCE[:, :6]),
    "stft": (lambda x, w: flambeau.stft(x, 8, 4, window=w, return_complex=True), SIGNAL, WINDOW),
    "cast": (lambda x: x.float(), REAL), "frexp": (lambda x: flambeau.frexp(x).mantissa, REAL),
    "frexp's exponent": (lambda x: flambeau.frexp(x).exponent, REAL),
    "segment_reduce by offsets": (lambda x, i: flambeau.segment_reduce(
        x, "sum", offsets=flambeau.cat([i[:1] * 0, i[:1] % 4, i[:1] * 0 + 4])), REAL, PLACES),
    "renorm": (lambda x: flambeau.renorm(x, 2, 0, 1.0), REAL),
    "cov": (lambda x: flambeau.cov(x), REAL),
    "cov of weighted rows": (lambda x, n, w: flambeau.cov(
        x, fweights=n[:5] + 1, aweights=w[:5]), REAL, PLACES, WINDOW),
    "lstsq": (lambda a, b: flambeau.linalg.lstsq(a, b[:, :2]).solution, SQUARE, REAL),
    "median": (lambda x: flambeau.median(x), REAL),
    "segment_reduce": (lambda x, i: flambeau.segment_reduce(
        x, "max", lengths=flambeau.stack([i[:1] % 5, 4 - i[:1] % 5]).reshape(2)), REAL, PLACES),
} | {f"special.{name}": (lambda x, n, f=getattr(flambeau.special, name): f(x, n), REAL, DEGREES)
     for name in dir(flambeau.special) if "_polynomial_" in name}


@pytest.mark.parametrize("name", CALLS)
def test_whole_tensors_at_once(name, no_loops):
    function, *stacks = CALLS[name]
    alone = [function(*slices) for slices in zip(*stacks)]
    for found in (func.vmap(function)(*stacks), func.vmap(function, -1)(*[
            s.movedim(0, -1) for s in stacks])):
        flambeau.testing.assert_close(found, flambeau.stack(alone), equal_nan=True)
    first = flambeau.stack([function(s, *[t[0] for t in stacks[1:]]) for s in stacks[0]])
    found = func.vmap(lambda x: function(x, *[t[0] for t in stacks[1:]]))(stacks[0])
    flambeau.testing.assert_close(found, first, equal_nan=True)


@pytest.mark.parametrize("name", [n for n in CALLS if "histc" not in n and n != "frexp's exponent"])
def test_gradients_of_whole_tensors(name, no_loops):
    function, *stacks = CALLS[name]

    def slope(*slices):
        def value(x):
            result = function(x, *slices[1:])
            return (result.abs() ** 2).sum()
        return func.grad(value)(slices[0])

    alone = flambeau.stack([slope(*slices) for slices in zip(*stacks)])
    flambeau.testing.assert_close(func.vmap(slope)(*stacks), alone, equal_nan=True)


NO_SLICES = {name: call for name, call in CALLS.items() if "segment" not in name} | {
    "sum of a number": (lambda x: x.sum(), WINDOW[:, 0]),
    "sort of a number": (lambda x: x.sort().values, WINDOW[:, 0]),
    "prod": (lambda x: x.prod(), REAL), "argmax": (lambda x: x.argmax(), REAL),
    "searchsorted": (lambda x: flambeau.searchsorted(x, x), WINDOW),
    "kthvalue": (lambda x: flambeau.kthvalue(x, 1).values, WINDOW[:, 0]),
}


@pytest.mark.parametrize("name", NO_SLICES)
def test_no_slices_at_all(name):
    function, *stacks = NO_SLICES[name]
    one = function(*[s[0] for s in stacks])
    found = func.vmap(function)(*[s[:0] for s in stacks])
    assert found.shape == (0, *one.shape) and found.dtype == one.dtype


def test_least_squares_under_two_levels(no_loops):
    a, b = SQUARE[:, None, :, :3] + WINDOW[:, :2, None, None], REAL[:, :, :2]
    found = func.vmap(func.vmap(flambeau.linalg.lstsq, (0, None)))(a, b)
    for i in range(3):
        for j in range(2):
            alone = flambeau.linalg.lstsq(a[i, j], b[i])
            flambeau.testing.assert_close(found.solution[i, j], alone.solution)
            assert found.rank[i, j] == alone.rank


def test_histograms_under_two_levels(no_loops):
    found = func.vmap(func.vmap(lambda x: flambeau.histc(x, 4), 1), 0)(REAL)
    alone = [flambeau.stack([flambeau.histc(x, 4) for x in matrix.t()]) for matrix in REAL]
    flambeau.testing.assert_close(found, flambeau.stack(alone))


def test_narrow_from_another_place_in_each_slice(no_loops):
    starts = flambeau.tensor([0, 2, -3])
    alone = flambeau.stack([x.narrow(1, s, 2) for x, s in zip(REAL, starts)])
    flambeau.testing.assert_close(func.vmap(lambda x, s: x.narrow(1, s, 2))(REAL, starts), alone)
    found = func.vmap(func.grad(lambda x, s: (x.narrow(1, s, 2) ** 2).sum()))(REAL, starts)
    alone = [2 * x * (flambeau.arange(5) - s % 5).ge(0) * (flambeau.arange(5) - s % 5).lt(2)
             for x, s in zip(REAL, starts)]
    flambeau.testing.assert_close(found, flambeau.stack(alone))
    with pytest.raises(RuntimeError, match=r"start \(4\) \+ length \(2\) exceeds"):
        func.vmap(lambda s: REAL.narrow(1, s, 2))(flambeau.tensor([0, 4]))


def test_the_gradient_of_a_number_of_a_vector():
    x = flambeau.rand(3, dtype=flambeau.float64, requires_grad=True)
    rows, = flambeau.autograd.grad(x.select(0, 1), x, flambeau.tensor([1.0, 2.0]).double(),
                                   is_grads_batched=True)
    assert rows.tolist() == [[0, 1, 0], [0, 2, 0]]
