"""Reductions and scans: the native ones against their twins in NumPy."""

import warnings

import numpy as np
import pytest

import flambeau
from flambeau import kernels
from flambeau.kernels.reduction import reductions

from ..pointwise.test_pointwise import GROUPS, INTEGERS, needs_native

FLOATS = GROUPS["f"]
REAL = ["bool", *INTEGERS, *FLOATS]
ALL = [*REAL, *GROUPS["c"]]
SUPPORTED = {
    "sum": ALL, "prod": ALL, "mean": FLOATS + GROUPS["c"], "moments": FLOATS + GROUPS["c"],
    "max": REAL, "min": REAL, "argmax": REAL, "argmin": REAL, "any": ALL, "all": ALL,
    "logsumexp": FLOATS,
}  # fmt: skip
SHAPES = [
    ((), None), ((0,), None), ((7,), None), ((7,), 0), ((3, 4, 5), None), ((3, 4, 5), 1),
    ((3, 4, 5), (0, 2)), ((3, 4, 5), (0, 1)), ((3, 4, 5), -1), ((3, 4, 5), ()), ((0, 3), 1),
    ((0, 3), 0), ((600, 3), 0), ((3, 600), 0), ((5000,), None), ((70000,), None), ((1, 5, 1), 1),
    ((300, 400), 0), ((300, 400), 1), ((40, 50, 60), (0, 2)), ((40, 50, 60), 1), ((2, 70000), 1),
    ((70000, 2), 0), ((70000, 2), 1), ((500, 3), 1), ((300, 17), 1), ((70, 40), 1),
    ((9, 20, 33), 2), ((90, 100), 1),
]  # fmt: skip


def sample(shape, dtype, seed=0):
    random = np.random.RandomState(seed)
    if dtype == "bool":
        return random.rand(*shape) < 0.7 if shape else np.array(True)
    x = np.asarray(random.randn(*shape) * 3)
    if dtype in INTEGERS:
        return np.asarray(np.abs(x) if dtype[0] == "u" else x).astype(dtype)
    return np.asarray(x + 1j * random.randn(*shape) if dtype[0] == "c" else x, dtype)


def compare(name, x, axis, keepdims=False, **named):
    native, twin = getattr(kernels, name), getattr(reductions, name)
    if name == "prod" and x.dtype.kind in "fc":
        x = np.exp(x * x.dtype.type(0.01))
    try:
        want = twin(x, axis, keepdims, **named)
    except (ValueError, TypeError, IndexError) as error:
        with pytest.raises(type(error)):
            native(x, axis, keepdims, **named)
        return
    got = native(x, axis, keepdims, **named)
    pairs = zip(got, want) if name == "moments" else [(got, want)]
    for g, w in pairs:
        assert type(g) is type(w) is np.ndarray
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        if w.dtype.kind in "fc":
            eps = np.finfo(w.dtype).eps if w.dtype != np.float16 else 2**-10
            scale = np.sqrt(max(1, x.size)) if name in ("sum", "mean") else 1
            kind = "c16" if w.dtype.kind == "c" else "f8"
            np.testing.assert_allclose(
                g.astype(kind), w.astype(kind), rtol=2e3 * eps if w.dtype.itemsize > 2 else 8 * eps,
                atol=30 * eps * scale, equal_nan=True,
            )  # fmt: skip
        else:
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("name", SUPPORTED)
def test_native_equals_reference(name, shape, axis):
    if name in ("argmax", "argmin") and isinstance(axis, tuple):
        pytest.skip("one axis")
    small = int(np.prod(shape)) < 3000
    for dtype in SUPPORTED[name] if small else ["float32", "int64"]:
        if dtype in SUPPORTED[name]:
            x = sample(shape, dtype)
            compare(name, x, axis)
            compare(name, x, axis, True)


@pytest.mark.parametrize("name", SUPPORTED)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_layouts(name, dtype):
    if dtype not in SUPPORTED[name]:
        pytest.skip("not for this dtype")
    x = sample((12, 20, 30), dtype)
    for view in (x.transpose(2, 0, 1), x[:, ::2], x[..., ::3], x[::2, :, 1:], x[:, :, :1],
                 np.broadcast_to(x[:, :1], x.shape), np.asfortranarray(x)):  # fmt: skip
        for axis in (None, 0, 1, 2):
            compare(name, view, axis)
        if not name.startswith("arg"):
            compare(name, view, (0, 2), True)
            compare(name, view, (2, 1))


def test_nan_wins():
    for dtype in ("f2", "f4", "f8"):
        x = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0]], dtype)
        np.testing.assert_array_equal(kernels.max(x, 1), np.array([np.nan, np.inf], dtype))
        np.testing.assert_array_equal(kernels.min(x, 1), np.array([np.nan, -np.inf], dtype))
        np.testing.assert_array_equal(kernels.max(x, 0), np.array([np.inf, np.nan, 3], dtype))
        assert kernels.argmax(x, 1).tolist() == [1, 0]
        assert kernels.argmin(x, 1).tolist() == [1, 1]
        assert np.isnan(kernels.max(x))
        assert kernels.argmax(x) == 1
    long = np.zeros(100000, "f4")
    long[77777] = np.nan
    assert np.isnan(kernels.max(long))
    assert kernels.argmin(long) == 77777
    assert kernels.any(long)
    assert not kernels.all(long)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 15, 16, 17, 33, 64, 65, 100])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
def test_short_rows(length, dtype):
    x = np.random.default_rng(length).integers(0, 9, (150, length)).astype(dtype)
    if dtype[0] == "f":
        x[3, length // 2] = x[77, 0] = np.nan
        x[5], x[6] = -np.inf, np.inf
    for view in (x, np.repeat(x, 2, 1)[:, ::2], x[::3]):
        for largest in (True, False):
            name = "max" if largest else "min"
            value = getattr(np, name)(view, 1)
            place = getattr(np, f"arg{name}")(view, 1)
            np.testing.assert_array_equal(getattr(kernels, name)(view, 1), value)
            np.testing.assert_array_equal(getattr(kernels, f"arg{name}")(view, 1), place)
            found = getattr(flambeau.from_numpy(view), name)(1)
            np.testing.assert_array_equal(found.values.numpy(), value)
            np.testing.assert_array_equal(found.indices.numpy(), place)


def test_first_of_equals():
    x = np.array([[2, 5, 5, 1], [0, 0, 0, 0]])
    assert kernels.argmax(x, 1).tolist() == [1, 0]
    assert kernels.argmin(x, 1).tolist() == [3, 0]
    assert kernels.argmax(x, 0).tolist() == [0, 0, 0, 0]


def test_dtypes():
    assert kernels.sum(np.array([True, True])) == 2
    assert kernels.sum(np.full(300, 200, "u1")) == 60000
    assert kernels.sum(np.array([1.7, 2.7]), dtype=np.dtype("i8")) == 3
    assert kernels.sum(np.array([1, 2]), None, False, np.dtype("f4")).dtype == np.float32
    assert kernels.sum(np.array([100, 100], "i1"), None, False, np.dtype("i1")) == -56
    assert kernels.prod(np.full(5, 10, "i1")) == 100000
    assert kernels.sum(np.full(70000, 1, "f2")).dtype == np.float16
    assert kernels.sum(np.full(4096, 0.1, "f2")) == np.float16(np.float16(0.1) * np.float64(4096))
    assert kernels.mean(np.array([1, 2], "f2")).dtype == np.float16
    assert np.isnan(kernels.mean(np.empty(0)))
    assert kernels.sum(np.empty((0, 3)), 0).tolist() == [0, 0, 0]


def test_long_sums_are_accurate():
    x = np.full(1 << 22, 0.1, "f4")
    assert abs(kernels.sum(x) / (np.float64(np.float32(0.1)) * x.size) - 1) < 2e-7
    tall = x.reshape(-1, 2)
    np.testing.assert_allclose(kernels.sum(tall, 0), float(np.float32(0.1)) * len(tall), rtol=4e-7)


@pytest.mark.parametrize("columns", [3, 64, 100, 1500])
@pytest.mark.parametrize("rows", [1, 5, 16, 39, 3000])
def test_sums_of_columns_and_rows(rows, columns):
    x = np.random.RandomState(0).randn(rows, columns)
    for dtype in ("f4", "f8"):
        y = x.astype(dtype)
        for axis in (0, 1):
            np.testing.assert_allclose(kernels.sum(y, axis), y.sum(axis, dtype="f8"), rtol=1e-5,
                                       atol=1e-4)
    whole = np.arange(rows * columns).reshape(rows, columns)
    for axis in (0, 1):
        np.testing.assert_array_equal(kernels.sum(whole, axis), whole.sum(axis))


def test_bits_do_not_depend_on_threads():
    before, x = kernels.get_num_threads(), np.random.RandomState(0).randn(3, 100003).astype("f4")
    results = []
    try:
        for n in (1, 2, 3):
            kernels.set_num_threads(n)
            results.append([kernels.sum(x), kernels.sum(x, 1), kernels.sum(x.T, 0)])
    finally:
        kernels.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ALL)
def test_scans(name, dtype):
    for shape in [(), (0,), (9,), (3, 4, 5), (0, 3), (4, 600), (300, 300), (70, 3)]:
        x = sample(shape, dtype)
        if name == "cumprod" and x.dtype.kind in "fc":
            x = np.exp(x * x.dtype.type(0.01))
        for axis in range(-max(1, x.ndim), x.ndim):
            got, want = (getattr(k, name)(x, axis) for k in (kernels, reductions))
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            eps = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
            if name == "cumprod" and dtype == "complex128":  # each product is rounded
                eps *= 10
            np.testing.assert_allclose(got, want, rtol=9 * eps, atol=9 * eps)
    x = sample((4, 6), dtype).T
    np.testing.assert_allclose(
        getattr(kernels, name)(x, 0), getattr(kernels, name)(x.copy(), 0), rtol=1e-3
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_scans_in_a_type(dtype):
    x = np.arange(1, 13, dtype=dtype).reshape(3, 4)
    for name, wanted in [("cumsum", dtype), ("cumprod", dtype), ("cumsum", np.float64)]:
        found, expected = (getattr(k, name)(x, 1, np.dtype(wanted)) for k in (kernels, reductions))
        assert found.dtype == expected.dtype == wanted
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ALL)
def test_running_extremes(name, dtype):
    if np.dtype(dtype).kind == "c":
        return
    for shape in [(), (9,), (3, 4, 5), (4, 600), (300, 300), (70, 3)]:
        x = sample(shape, dtype)
        if x.dtype.kind not in "bui" and x.size > 1:
            x.flat[x.size // 2] = np.nan
        for axis in range(-max(1, x.ndim), x.ndim):
            for got, want in zip(*(getattr(k, name)(x, axis) for k in (kernels, reductions))):
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "any", "all"])
@pytest.mark.skipif(not kernels.native_available, reason="no native kernels")
def test_order_of_reduced_dimensions_is_that_of_memory(name):
    x = sample((70, 50, 60), "float32") * np.float32(0.01) + 1
    wanted = getattr(kernels, name)(x)
    for order in [(2, 1, 0), (1, 2, 0), (1, 0, 2)]:
        assert getattr(kernels, name)(x.transpose(order)) == wanted
    np.testing.assert_array_equal(getattr(kernels, name)(x.transpose(2, 0, 1), (0, 2)),
                                  getattr(kernels, name)(x, (1, 2)))


def test_logsumexp_of_extremes():
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [1000, 1000], [np.nan, 0]], "f4")
    for k in (kernels, reductions):
        np.testing.assert_allclose(
            k.logsumexp(x, 1), [-np.inf, np.inf, 1000 + np.log(2), np.nan], rtol=1e-6
        )
        assert k.logsumexp(np.empty((2, 0), "f4"), 1).tolist() == [-np.inf, -np.inf]


def test_no_warnings():
    x = np.array([[np.nan, np.inf], [-np.inf, 3e38], [3e38, 3e38]], "f4")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for name in SUPPORTED:
            for axis in (None, 0, 1):
                getattr(kernels, name)(x, axis)
                getattr(reductions, name)(x, axis)
        for k in (kernels, reductions):
            k.cumsum(x, 0), k.cumprod(x, 0), k.mean(x[:0], 0)


@needs_native
def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernels.register_bfloat16()
    x = sample((30, 40), "float32").astype(ml_dtypes.bfloat16)
    for name in ("sum", "mean", "max", "min", "logsumexp", "argmax", "any"):
        for axis in (None, 0, 1):
            got, want = (getattr(k, name)(x, axis) for k in (kernels, reductions))
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.astype("f4"), want.astype("f4"), rtol=2**-7, atol=2**-6)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9, 49, 96, 200, 1030])
def test_sums_and_products_of_rows_of_every_length(n, dtype):
    random = np.random.RandomState(n)
    x = (random.rand(7, n, 5) * 3).astype(dtype)
    for array, axis in ((x, 1), (x.transpose(0, 2, 1).copy(), 2), (x.transpose(1, 0, 2).copy(), 0),
                        (x.transpose(2, 0, 1).copy(), (0, 2))):
        exact = array.astype("f8").sum(axis)
        assert np.allclose(kernels.sum(array, axis), exact, rtol=2e-3 if dtype == "f2" else 1e-6)
    ones = 1 + (random.rand(7, n) - 0.5).astype("f4") / 100
    assert np.allclose(kernels.prod(ones, 1), ones.astype("f8").prod(1), rtol=1e-4)


@pytest.mark.parametrize("n", [6, 40, 70000])
def test_bools_of_any_bytes_are_true(n):
    plain = np.random.RandomState(0).rand(n, 4) < 0.6
    plain[:, 3] = True
    bytes_ = np.random.RandomState(1).randint(1, 256, plain.shape)
    strange = (plain * bytes_).astype("u1").view(bool)
    x, y = flambeau.from_numpy(strange), flambeau.from_numpy(plain)
    for axis in (None, 0, 1):
        dims = () if axis is None else (axis,)
        for name in ("sum", "prod", "any", "all", "count_nonzero", "amax", "amin"):
            if name in ("prod", "any", "all") and axis is None:
                continue
            assert getattr(x, name)(*dims).tolist() == getattr(y, name)(*dims).tolist(), name
    for dtype in ("int64", "uint8", "float32", "float64", "bfloat16", "complex64"):
        assert x.to(getattr(flambeau, dtype)).tolist() == y.to(getattr(flambeau, dtype)).tolist()
    assert x.view(flambeau.uint8).tolist() == strange.view("u1").tolist()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(200001,), (3, 90000)])
def test_long_rows_in_pieces(dtype, shape):
    """Rows that several threads share: places, moments and norms are those of the whole row."""
    x = np.random.RandomState(0).standard_normal(shape).astype(dtype)
    x[..., 70000] = x[..., 50] = 9
    wide = x.astype("f8")
    assert (kernels.argmax(x, -1) == 50).all()
    np.testing.assert_array_equal(kernels.argmin(x, -1), np.argmin(x, -1))
    close = {"rtol": 1e-6 if dtype == "f4" else 1e-13}
    middle, spread = kernels.moments(x, -1)
    tiny = 1e-8 if dtype == "f4" else 1e-16
    np.testing.assert_allclose(middle, wide.mean(-1), atol=tiny, **close)
    np.testing.assert_allclose(spread, wide.var(-1) * shape[-1], **close)
    t = flambeau.from_numpy(x)
    for p in (0, 1, 2, 3, 2.5, np.inf, -np.inf):
        want = np.linalg.norm(wide, p, axis=-1)
        np.testing.assert_allclose(flambeau.linalg.vector_norm(t, p, dim=-1).numpy(), want, **close)
    x[..., 80000] = np.nan
    assert (kernels.argmax(x, -1) == 80000).all()
    for p in (1, 2, np.inf, -np.inf):
        assert flambeau.linalg.vector_norm(flambeau.from_numpy(x), p, dim=-1).isnan().all()


@pytest.mark.parametrize("dim", [0, 1, 2, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("p", [1, 2, 3, np.inf, -np.inf])
def test_norms_along_any_dimension(p, dim):
    x = np.random.RandomState(0).standard_normal((37, 40, 33)).astype("f4")
    dims = dim if isinstance(dim, tuple) else (dim,)
    size = np.abs(x.astype("f8"))
    want = (size.max(dims) if p == np.inf else size.min(dims) if p == -np.inf
            else (size ** p).sum(dims) ** (1 / p))
    got = flambeau.linalg.vector_norm(flambeau.from_numpy(x), p, dim=dim)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-6)


@pytest.mark.parametrize("n", [9, 33, 200, 2049, 40000, 300001])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_lose_little(n, dtype):
    x = np.random.RandomState(n).rand(n).astype(dtype)
    exact = np.sum(x.astype(np.longdouble))
    assert abs(kernels.sum(x) - exact) <= 2 * np.finfo(dtype).eps * exact
