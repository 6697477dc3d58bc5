"""Samples of the ops of `flambeau/ops/linalg/matmul.py`."""
import numpy as np
import pytest
from layer_tests import LayerTests
from layers import Cases
from matrices import both, products
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()


@family("matmul")
def _(r):
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)),
              ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 3, 2), (2,)), ((3,), (2, 3, 2))]
    return [c for s in shapes for c in both(r, *s, draw="real")]


@family("nn.functional.linear")
def _(r):
    return [call(r.real(2, 3), r.real(4, 3)), call(r.real(2, 3), r.real(4, 3), r.real(4)),
            call(r.real(2, 2, 3), r.real(4, 3), r.real(4)),
            call(r.real(3), r.real(4, 3), r.real(4)),
            call(r.complex(2, 3), r.complex(4, 3), r.complex(4))]


products(family, (3,), (3,))("vdot")
products(family, (2, 3), (3, 4))("linalg.matmul")


class TestSamples(SampleTests):
    family = family


# ---- layers -------------------------------------------------------------------------------------

cases = Cases()
simple = cases.simple
simple("linear", lambda t, F, x, w, b: F.linear(x, w, b), (2, 3), (4, 3), (4,))
simple("linear_3d", lambda t, F, x, w: F.linear(x, w), (2, 2, 3), (4, 3))


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("by_rows", [True, False])
def test_integers_wrap_and_no_term_is_lost(dtype, by_rows):
    """At all lengths that a loop over vectors may treat in another way."""
    rng = np.random.default_rng(0)
    for k in range(40):
        a = rng.integers(0, 256, (3, k)).astype(dtype)
        b = rng.integers(0, 256, k).astype(dtype)
        expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
        x, y = flambeau.tensor(a if by_rows else np.asfortranarray(a)), flambeau.tensor(b)
        assert (x @ y).tolist() == expected.tolist()
        assert flambeau.addmv(y.new_zeros(3), x, y).tolist() \
            == expected.tolist()
        assert flambeau.dot(x[0], y).item() == expected[0]



def test_empty_batches_of_two_types():
    """Where nothing is multiplied the types need not agree: the second one is the result's."""
    for m, k, n in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        found = flambeau.ones(2, m, k) @ flambeau.ones(2, k, n, dtype=flambeau.float64)
        assert found.dtype is flambeau.float64 and flambeau.equal(
            found, flambeau.zeros(2, m, n, dtype=flambeau.float64))
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        flambeau.ones(2, 1, 1) @ flambeau.ones(2, 1, 1, dtype=flambeau.float64)


def test_what_has_no_dimensions_has_no_rows():
    for product in (lambda x: flambeau.mv(x, flambeau.ones(3)),
                 lambda x: flambeau.addmv(x, flambeau.ones(5, 3), flambeau.ones(2))):
        with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dim"):
            product(flambeau.ones(()))
