"""Samples of reductions, extremes, scans, sorting, moments, norms and searching."""
import numpy as np
from samples import Samples, call

family = Samples()
inf, nan = float("inf"), float("nan")

# ---- sums, products, truth ----------------------------------------------------------------------

for _name in ("sum", "mean", "nansum", "nanmean"):
    @family(_name)
    def _(r, name=_name):
        x = r.real(2, 3)
        with_nan = np.where(r.bools(2, 3), nan, r.real(2, 3))
        calls = [call(x), call(x, 1), call(x, (0, 1), True), call(x, -1, keepdim=True), call(x, ()),
                 call(r.real()), call(r.real(0, 2), 1), call(r.real(0, 2), 0),
                 call(r.real(2, 3, 2), (0, 2))]
        if not name.startswith("nan"):
            calls += [call(r.complex(2, 3), 0), call(x, 0, dtype=np.dtype("float32"))]
        else:
            calls += [call(with_nan).but(smooth=False), call(with_nan, 0).but(smooth=False)]
        if name.endswith("sum"):
            calls += [call(r.integers(0, 5, 3)), call(r.bools(2, 3), 0)]
        return calls


@family("prod")
def _(r):
    x = r.real(2, 3)
    calls = [call(x), call(x, 1), call(x, 0, True), call(r.real()), call(r.real(0, 2), 0),
             call(r.complex(2, 3), 1), call(r.integers(1, 5, 3)), call(r.bools(3)),
             call(r.integers(1, 5, 3), dtype=np.dtype("float32"))]
    for zeros in ([0], [0, 1], [0, 1, 2]):
        y = x.copy()
        y[1, zeros] = 0
        calls += [call(y), call(y, 1), call(y, 0)]
    return calls


for _name in ("all", "any", "count_nonzero"):
    @family(_name)
    def _(r, name=_name):
        x = r.real(2, 3) * r.bools(2, 3)
        calls = [call(x), call(x, 1), call(r.bools(2, 3), 0), call(r.bools(2, 3), (0, 1)),
                 call(r.real(0, 2), 0), call(np.array([1, 0], np.uint8)), call(r.real())]
        return calls + ([] if name == "count_nonzero" else [call(x, 1, True)])


@family("logsumexp")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3), (0, 1)), call(r.real(2, 3), 0, True),
            call(r.real(), 0),
            call(np.array([[inf, 1.0], [-inf, -inf], [nan, 0.0]]), 1).but(smooth=False),
            call(r.integers(0, 5, 3), 0), call(r.real(0, 2), 0)]


# ---- extremes -----------------------------------------------------------------------------------

TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, -1.0]])
WITH_NAN = np.array([[1.0, nan, 3.0], [nan, nan, -1.0]])

for _name in ("max", "min"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, 0, True), call(x, r.distinct(3)), call(x, dim=-1),
                call(TIES).but(smooth=False), call(TIES, 1).but(smooth=False),
                call(WITH_NAN).but(smooth=False), call(WITH_NAN, 0).but(smooth=False),
                call(r.real()), call(r.real(), 0), call(r.real(0, 2), 1), call(r.integers(0, 9, 5)),
                call(r.bools(4)), call(r.real(0, 2), 0), call(r.real(0))]

for _name in ("amax", "amin"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, (0, 1), True), call(x, ()), call(r.real()),
                call(TIES).but(smooth=False), call(TIES, 1).but(smooth=False),
                call(r.real(0, 2), 1), call(r.integers(0, 9, 5)), call(r.distinct(2, 3, 2), (0, 2))]

for _name in ("argmax", "argmin"):
    @family(_name)
    def _(r):
        x = r.distinct(2, 3)
        return [call(x), call(x, 1), call(x, 0, True), call(x, keepdim=True), call(TIES, 1),
                call(WITH_NAN), call(WITH_NAN, 1), call(r.real()), call(r.real(), 0)]


@family("aminmax")
def _(r):
    return [call(r.distinct(2, 3)), call(r.distinct(2, 3), dim=1),
            call(r.distinct(2, 3), dim=0, keepdim=True), call(TIES, dim=1).but(smooth=False)]


# ---- scans --------------------------------------------------------------------------------------


@family("cumsum")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3), 0), call(r.real(), 0), call(r.real(0, 2), 0),
            call(r.complex(3), 0), call(r.integers(0, 5, 4), 0), call(r.bools(4), 0),
            call(r.integers(0, 5, 4), 0, dtype=np.dtype("float64"))]


@family("cumprod")
def _(r):
    x = r.real(2, 4)
    calls = [call(x, 1), call(x, 0), call(r.real(), 0), call(r.complex(3), 0),
             call(r.integers(1, 5, 4), 0)]
    for zeros in ([1], [0, 2]):
        y = x.copy()
        y[1, zeros] = 0
        calls += [call(y, 1), call(y, 0)]
    return calls


@family("logcumsumexp")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3) * 5, 0), call(r.real(), 0),
            call(r.complex(3), 0), call(np.array([800.0, -900.0, 800.0]), 0).but(smooth=False)]


for _name in ("cummax", "cummin"):
    @family(_name)
    def _(r):
        return [call(r.distinct(2, 4), 1), call(r.distinct(3, 2), 0), call(r.real(), 0),
                call(TIES, 1).but(smooth=False), call(WITH_NAN, 1).but(smooth=False),
                call(r.integers(0, 5, 6), 0), call(r.bools(4), 0), call(r.real(0, 2), 1)]


# ---- sorting ------------------------------------------------------------------------------------


@family("sort")
def _(r):
    return [call(r.distinct(2, 4)), call(r.distinct(3, 2), 0, True), call(r.real()),
            call(TIES, stable=True).but(smooth=False), call(WITH_NAN, 1).but(smooth=False),
            call(r.distinct(2, 3), stable=True, dim=0), call(r.distinct(5), 0, True),
            call(r.integers(0, 100, 6)), call(r.real(0, 2))]


@family("argsort")
def _(r):
    return [call(r.distinct(2, 4)), call(r.distinct(3, 2), 0, True), call(TIES, stable=True)]


@family("msort")
def _(r):
    return [call(r.distinct(3, 2))]


@family("topk")
def _(r):
    return [call(r.distinct(2, 4), 2), call(r.distinct(4, 2), 3, 0), call(r.real(), 1),
            call(r.distinct(2, 4), 2, largest=False), call(r.distinct(5), 0),
            call(r.distinct(5), 6)]


@family("kthvalue")
def _(r):
    return [call(r.distinct(2, 4), 2), call(r.distinct(4, 2), 3, 0, True), call(r.real(), 1)]


for _name in ("median", "nanmedian"):
    @family(_name)
    def _(r):
        return [call(r.distinct(2, 4)), call(r.distinct(2, 3), 1), call(r.distinct(4, 2), 0, True),
                call(WITH_NAN).but(smooth=False), call(WITH_NAN, 0).but(smooth=False),
                call(r.integers(0, 100, 5)), call(r.real()), call(r.real(), 0)]


@family("mode")
def _(r):
    return [call(r.distinct(2, 3)), call(np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]))
            .but(smooth=False), call(r.distinct(3, 2), 0, True), call(r.real())]


# ---- moments, norms -----------------------------------------------------------------------------

for _name in ("var", "std", "var_mean", "std_mean"):
    @family(_name)
    def _(r):
        x = r.real(2, 3)
        return [call(x), call(x, 1), call(x, 1, correction=0), call(x, (0, 1), keepdim=True),
                call(x, False), call(x, 0, True, True), call(r.complex(2, 3), 1),
                call(x, dim=1, correction=0.5), call(np.ones((2, 3)), 1).but(smooth=False),
                call(r.real(1)).but(smooth=False)]


@family("linalg.vector_norm")
def _(r):
    calls = [call(r.real(2, 3), p) for p in (2, 1, inf, -inf, 0, 3, 0.5, 1.5, -1)]
    calls += [call(r.real(2, 3), 2, 1), call(r.real(2, 3), 3, 0, True), call(r.complex(2, 3), 2),
              call(r.complex(2, 3), 1, 1), call(r.complex(3), 3), call(r.real(), 2)]
    zero = np.array([[0.0, 0.0], [0.0, 1.0]])
    return calls + [call(zero, p, 1).but(smooth=False) for p in (2, 1, inf, 3, 1.5, 0.5)]


@family("norm")
def _(r):
    return [call(r.real(2, 3)), call(r.real(2, 3), 1), call(r.real(2, 3), "fro", 1),
            call(r.real(2, 3), 3, 0, True), call(r.real(2, 3), dtype=np.dtype("float64"))]


@family("dist")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3)), call(r.real(2, 3), r.real(3), 1),
            call(r.real(3), r.real(3), 3.5), call(np.ones(2), np.ones(2)).but(smooth=False)]


@family("renorm")
def _(r):
    return [call(r.real(2, 3), 2, 0, 1.0), call(r.real(2, 3), 1, 1, 2.5),
            call(r.real(2, 3, 2), 2, 1, 100.0)]


@family("cov")
def _(r):
    return [call(r.real(3, 4)), call(r.real(5)), call(r.real(3, 4), correction=0),
            call(r.real(3, 4), fweights=r.integers(1, 4, 4)),
            call(r.real(3, 4), aweights=r.positive(4)),
            call(r.real(3, 4), fweights=r.integers(1, 4, 4), aweights=r.positive(4)),
            call(r.complex(2, 4)), call(r.real()).but(smooth=False)]


@family("corrcoef")
def _(r):
    return [call(r.real(3, 4)), call(r.real(5)), call(r.complex(2, 4))]


for _name in ("quantile", "nanquantile"):
    @family(_name)
    def _(r):
        x = r.distinct(3, 4)
        calls = [call(x, 0.3), call(x, 0.6, 1), call(x, 0.6, 0, True), call(x, 0.25, keepdim=True),
                 call(x, np.array([0.2, 0.9]), 1), call(x, np.array([0.2, 0.9]), 0, True),
                 call(x, np.array([0.2, 0.9])), call(r.real(), 0.5),
                 call(WITH_NAN, 0.5, 1).but(smooth=False)]
        return calls + [call(x, 0.3, 1, interpolation=way)
                        for way in ("lower", "higher", "nearest", "midpoint")]


# ---- searching ----------------------------------------------------------------------------------

SEQUENCE = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 4.0]])


@family("nonzero")
def _(r):
    return [call(r.bools(2, 3)), call(r.bools(4), as_tuple=True), call(r.real()),
            call(r.real(), as_tuple=True)]


@family("argwhere")
def _(r):
    return [call(r.bools(2, 3))]


@family("unique")
def _(r):
    x = r.integers(0, 4, 2, 5)
    return [call(x), call(x, return_inverse=True), call(x, True, True, True),
            call(x[:, :2] % 2, dim=0, return_counts=True), call(x % 2, dim=1, return_inverse=True)]


@family("unique_consecutive")
def _(r):
    x = r.integers(0, 2, 2, 5)
    return [call(x), call(x, True, True), call(x, dim=1), call(x, dim=0, return_counts=True)]


@family("searchsorted")
def _(r):
    return [call(SEQUENCE, r.real(2, 4) * 2), call(SEQUENCE[0], 3.0),
            call(SEQUENCE[0], r.real(2, 2)),
            call(SEQUENCE, np.array([[3.0], [4.0]]), right=True),
            call(SEQUENCE[0], np.array([3.0]), side="right", out_int32=True),
            call(SEQUENCE[0][::-1].copy(), np.array([2.0]), sorter=np.array([2, 1, 0]))]


@family("bucketize")
def _(r):
    return [call(r.real(2, 3), SEQUENCE[0]), call(np.array([1.0, 3.0]), SEQUENCE[0], right=True),
            call(2, SEQUENCE[0])]


@family("isin")
def _(r):
    return [call(r.integers(0, 5, 2, 3), r.integers(0, 5, 2)), call(r.integers(0, 5, 4), 2),
            call(2, r.integers(0, 5, 4)),
            call(r.integers(0, 5, 4), r.integers(0, 5, 2), invert=True),
            call(r.integers(0, 300, 200), r.integers(0, 300, 100))]


@family("bincount")
def _(r):
    x = r.integers(0, 5, 8)
    return [call(x), call(x, minlength=9), call(x, r.real(8)), call(x, r.integers(0, 4, 8))]


@family("histc")
def _(r):
    return [call(r.real(20), 5), call(r.real(20), 4, -1, 1), call(np.ones(3), 3)]


@family("histogram")
def _(r):
    return [call(r.real(20), 5), call(r.real(20), 4, range=(-1.0, 1.0)),
            call(r.real(20), np.array([-2.0, 0.0, 1.0])), call(r.real(9), 3, density=True),
            call(r.real(9), 3, weight=r.positive(9))]


@family("histogramdd")
def _(r):
    return [call(r.real(20, 2), [3, 4]), call(r.real(20, 2), [2, 2], range=[-1.0, 1.0, -2.0, 2.0]),
            call(r.real(10, 2), [np.array([-2.0, 0.0, 2.0]), np.array([-3.0, 3.0])])]


@family("nonzero_static")
def _(r):
    return [call(r.bools(5), size=3), call(r.bools(2, 3), size=6, fill_value=9)]


@family("unravel_index")
def _(r):
    return [call(r.integers(0, 12, 5), (3, 4)), call(r.integers(0, 12, 2, 2), (2, 3, 2))]


@family("frobenius_norm")
def _(r):
    return [call(r.real(2, 3), 1)]


@family("segment_reduce")
def _(r):
    lengths, bounds = np.array([2, 0, 3]), np.array([[0, 1, 4], [1, 1, 5]])
    return [call(r.distinct(5, 2), kind, lengths=lengths, **start).but(smooth=kind != "mean")
            for kind in ("sum", "mean", "max", "min", "prod")
            for start in ({}, {"initial": 0.3})] + [
        call(r.distinct(2, 5, 2), kind, offsets=bounds, axis=1) for kind in ("sum", "prod")]


family.untested |= dict.fromkeys(
    ("is_floating_point", "is_complex", "is_signed", "is_inference", "numel", "is_same_size",
     "result_type"), "asks about types and shapes; see test_inquiry.py")
family.untested["nuclear_norm"] = "linalg.matrix_norm has samples"
family.untested["histc_rows"] = "histc under vmap; see test_batching.py"
family.untested["_unique"] = "through torch._unique: see test_searching.py"
family.unbatched = ("bincount", "histc", "histogram", "histogramdd", "unique", "nonzero", "cov",
                    "unique_consecutive", "argwhere", "allclose", "equal", "is_nonzero")
