"""Fractional pooling against its definition, window by window."""
import math

import pytest

import flambeau
from flambeau.nn import functional as F


def starts(u, size, out, k):
    """Where the windows of one dimension begin, for a uniform u: Graham's pseudo-random steps."""
    if out == 1:
        return [size - k]
    alpha = (size - k) / (out - 1)
    return [math.floor((i + u) * alpha) - math.floor(u * alpha)
            for i in range(out - 1)] + [size - k]


@pytest.mark.parametrize("dims", [2, 3])
def test_windows(dims):
    size, out, k = (9, 7, 8)[:dims], (4, 1, 5)[:dims], (2, 3, 2)[:dims]
    flambeau.manual_seed(0)
    x = flambeau.randn(2, 3, *size, dtype=flambeau.float64)
    u = flambeau.rand(2, 3, dims, dtype=flambeau.float64)
    pool = getattr(F, f"fractional_max_pool{dims}d")
    x[1, 2][(3,) * dims] = math.nan
    found, where = pool(x, k, output_size=out, return_indices=True, _random_samples=u)
    for n in range(2):
        for c in range(3):
            order = range(dims) if dims == 3 else (1, 0)
            at = [starts(u[n, c, j].item(), *each) for j, *each in zip(order, size, out, k)]
            for place in flambeau.cartesian_prod(*[flambeau.arange(o) for o in out]).tolist():
                window = tuple(slice(at[a][i], at[a][i] + k[a]) for a, i in enumerate(place))
                wanted = x[n, c][window].max()
                assert flambeau.equal(found[n, c][tuple(place)].nan_to_num(99),
                                      wanted.nan_to_num(99))
                assert x[n, c].reshape(-1)[where[n, c][tuple(place)]].nan_to_num(99) \
                    == wanted.nan_to_num(99)
