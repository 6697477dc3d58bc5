"""What stands in for SciPy's special functions gives what they give."""
import mpmath as mp
import numpy as np
import pytest

import flambeau
from flambeau.kernels.pointwise import special_functions

RANDOM = np.random.default_rng(0)
REAL = np.concatenate([RANDOM.uniform(-30, 30, 40), np.geomspace(1e-8, 1, 10)])
POSITIVE, CHANCE = np.geomspace(1e-8, 1e5, 50), np.geomspace(1e-30, 0.9999, 30)
EXACT = {           # and how many units in the last place they may be off
    "erf": (mp.erf, REAL, 2), "erfc": (mp.erfc, REAL / 3, 2),
    "erfinv": (mp.erfinv, RANDOM.uniform(-1, 1, 40), 8),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), np.append(REAL / 6, POSITIVE), 12),
    "ndtr": (mp.ncdf, REAL / 4, 40), "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), REAL - 25, 60),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), CHANCE, 100),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), np.append(POSITIVE, -POSITIVE[::3] / 1e3), 8),
    "digamma": (mp.digamma, np.append(POSITIVE, -RANDOM.uniform(0.1, 20, 20)), 200),
    "i0": (lambda x: mp.besseli(0, x), REAL, 10), "i1": (lambda x: mp.besseli(1, x), REAL, 10),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), REAL * 4, 10),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), REAL * 4, 10),
    "k0": (lambda x: mp.besselk(0, x), POSITIVE[:40], 400),
    "k1": (lambda x: mp.besselk(1, x), POSITIVE[:40], 400),
    "k0e": (lambda x: mp.besselk(0, x) * mp.exp(x), POSITIVE[:40], 40),
    "k1e": (lambda x: mp.besselk(1, x) * mp.exp(x), POSITIVE[:40], 40),
    "j0": (lambda x: mp.besselj(0, x), REAL * 5, 10),
    "j1": (lambda x: mp.besselj(1, x), REAL * 5, 10),
    "y0": (lambda x: mp.bessely(0, x), POSITIVE[:40], 20),
    "y1": (lambda x: mp.bessely(1, x), POSITIVE[:40], 20),
    "airy": (mp.airyai, RANDOM.uniform(-24, 10, 60), 100),
}
OSCILLATING = {"j0", "j1", "y0", "y1", "airy"}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", EXACT)
def test_of_one_argument(name, compiled):
    exact, x, units = EXACT[name]
    if name == "airy":
        found, slopes = special_functions.airy(x)
        exact_slopes = [float(mp.airyai(a, derivative=1)) for a in x]
        np.testing.assert_allclose(slopes, exact_slopes, rtol=1e-13, atol=3e-14)
    else:
        found = special_functions.find(name, compiled)(x)
        assert special_functions.find(name, compiled)(x.astype(np.float32)).dtype == np.float32
    with mp.workdps(60):
        for argument, value in zip(x.tolist(), found.tolist()):
            expected = exact(mp.mpf(argument))
            scale = max(1, abs(expected)) if name in OSCILLATING else abs(expected)
            if abs(expected) > 1e-300:
                assert abs(value - expected) <= units * 2.3e-16 * scale, argument


def hurwitz(s, q):
    """500 terms and the first of Euler and Maclaurin's; mpmath's own is wrong by 1e-10 at (27, 300)
    """
    y = q + 500
    rest = y ** (1 - s) / (s - 1) + y ** -s / 2 + s * y ** (-s - 1) / 12
    rest -= s * (s + 1) * (s + 2) * y ** (-s - 3) / 720
    return sum((q + k) ** -s for k in range(500)) + rest


@pytest.mark.parametrize("compiled", [True, False])
def test_gammas_and_zeta(compiled):
    a, x = np.geomspace(0.01, 100, 40), np.geomspace(0.02, 200, 40)
    p, q = (special_functions.find(n, compiled)(a, x) for n in ("gammainc", "gammaincc"))
    s, shift = np.linspace(1.01, 30, 40), np.geomspace(1e-3, 1e3, 40)
    zeta = special_functions.find("zeta", compiled)(s, shift)
    for i in range(40):
        with mp.workdps(40):
            for found, expected in ((p[i], mp.gammainc(a[i], 0, x[i], regularized=True)),
                                    (q[i], mp.gammainc(a[i], x[i], mp.inf, regularized=True)),
                                    (zeta[i], hurwitz(mp.mpf(s[i]), mp.mpf(shift[i])))):
                assert abs(found - expected) <= 1e-12 * abs(expected)


def test_compiled_functions_have_the_same_edges():
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, -0.5, 1.0, 2.5, 200.0, 3e5])
    a, x = (e.reshape(-1) for e in np.meshgrid(edges, edges))
    for name in ("gammainc", "gammaincc", "zeta"):
        with np.errstate(all="ignore"):
            both = [special_functions.find(name, compiled)(a, x) for compiled in (True, False)]
        np.testing.assert_allclose(*both, rtol=1e-9, err_msg=name)
    for name in ("i0", "i0e", "i1", "i1e", "j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e",
                 "erfcx", "ndtr", "log_ndtr", "ndtri"):
        both = [special_functions.find(name, compiled)(edges) for compiled in (True, False)]
        np.testing.assert_allclose(*both, rtol=1e-9, atol=1e-15, err_msg=name)


def test_edges():
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0])
    for name, expected in {
        "erf": [np.nan, 1, -1, 0, -0.8427007929497149], "erfinv": [np.nan] * 3 + [0, -np.inf],
        "gammaln": [np.nan, np.inf, np.inf, np.inf, np.inf],
        "digamma": [np.nan, np.inf, np.nan, -np.inf, np.nan],
        "erfcx": [np.nan, 0, np.inf, 1, 5.008980080762283],
        "ndtri": [np.nan, np.nan, np.nan, -np.inf, np.nan],
        "k0e": [np.nan, 0, np.nan, np.inf, np.nan],
    }.items():
        found = special_functions.find(name)(edges)
        np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=name)
    assert special_functions.zeta(2.0, np.array([0.0, -3.0])).tolist() == [np.inf, np.inf]
    assert special_functions.polygamma(1, 1.0) == pytest.approx(np.pi ** 2 / 6, rel=1e-14)


def test_what_is_missing_names_the_extra():
    with pytest.raises(ImportError, match=r"ellipk needs SciPy: pip install 'flambeau\[scipy\]'"):
        special_functions.find("ellipk")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_ndtr_of_no_number(dtype):
    assert np.isnan(special_functions.ndtr(np.array([np.nan, -np.nan], dtype))).all()


@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.float64])
def test_lgamma_is_zero_where_gamma_is_one(dtype):
    for count in (1, 3, 50):
        x = flambeau.tensor([1.0, 2.0] * count, dtype=dtype)
        assert not flambeau.lgamma(x).any()
