"""Samples of special functions, orthogonal polynomials, and differences."""
import numpy as np
from samples import Samples, call

family = Samples()
inf, nan = float("inf"), float("nan")
CORNERS = [[0.0, -0.0, inf, -inf, nan, 1.0, -1.0]]

# ---- one argument -------------------------------------------------------------------------------

# Where `off` is set, PyTorch's own numbers are wrong from the ninth digit on.
family.unary("lgamma", "digamma", domain="positive", complex=False, off=10, more=[
    [-0.5, -1.5, 0.0, -0.0, inf, nan]])
family.unary("special.i0e", "special.i1", "special.i1e", "i0", "special.erfcx", "special.ndtr",
             "special.log_ndtr", complex=False, more=[[0.0, 3.0, -3.0, 20.0, -20.0]])
family.unary("special.ndtri", domain="probability", complex=False, more=[[0.0, 1.0, nan, 0.5]])
family.unary("special.entr", domain="positive", complex=False, more=[[0.0, -1.0, nan, inf]])
family.unary("sinc", more=CORNERS)
family.unary("special.bessel_j0", "special.bessel_j1", "special.modified_bessel_i0",
             "special.modified_bessel_i1", "special.spherical_bessel_j0", "special.airy_ai",
             complex=False, off=1e3, more=[[0.0, nan, 8.0, -8.0]])
family.unary("special.bessel_y0", "special.bessel_y1", "special.modified_bessel_k0",
             "special.modified_bessel_k1", "special.scaled_modified_bessel_k0",
             "special.scaled_modified_bessel_k1", domain="positive", complex=False, off=1e3,
             more=[[0.0, nan, 8.0, -1.0]])

for _name in ("special.expit", "special.gammaln", "special.psi", "special.exp2", "special.expm1",
              "special.log1p", "special.erf", "special.erfc"):
    family.unary(_name, domain="positive", complex=False)


@family("polygamma")
def _(r):
    calls = [call(n, r.positive(2, 3)) for n in (0, 1, 2, 3)] + [
        call(1, np.array([-0.5, -1.5, 0.0, nan])).but(smooth=False), call(2, r.positive())]
    return [c.but(off=100) for c in calls]


@family("Tensor.polygamma")
def _(r):
    return [call(r.positive(3), 1).but(off=100)]


@family("mvlgamma")
def _(r):
    return [call(r.above(2.0, 2, 3), 1), call(r.above(2.0, 3), 4), call(r.above(2.0), 2)]


@family("logit")
def _(r):
    return [call(r.probability(2, 3)), call(r.probability(2, 3), 0.3), call(r.real(5), 0.1),
            call(np.array([0.0, 1.0, 2.0, nan, -1.0])).but(smooth=False),
            call(np.array([0.0, 1.0, 2.0, nan]), 0.2).but(smooth=False), call(r.probability())]


# ---- two arguments ------------------------------------------------------------------------------

family.binary("xlogy", "special.xlog1py", domain="positive", complex=False, number=2.5, first=1.5,
              off=1e2,
              more=[([0.0, 0.0, 1.0, nan, 0.0], [0.0, nan, 0.0, 1.0, inf])])
family.binary("logaddexp", complex=True, more=[([1000.0, -1000.0], [1000.5, -1001.0])])
family.binary("logaddexp2", complex=False, more=[([1000.0, -1000.0], [1000.5, -1001.0])])
family.binary("ldexp", complex=False)


@family("heaviside")
def _(r):
    return [call(r.real(2, 3), r.real(3)), call(np.array([0.0, 1.0, -1.0, nan]), r.real())
            .but(smooth=False), call(r.integers(-1, 2, 4), r.integers(0, 5, 4))]


@family("frexp")
def _(r):
    return [call(r.positive(2, 3)), call(np.array([0.0, 1e10, -3.0])).but(smooth=False)]


for _name in ("igamma", "igammac"):
    @family(_name)
    def _(r):
        calls = [call(r.positive(2, 3), r.positive(2, 3)), call(r.positive(2, 1), r.positive(3)),
                 call(r.positive(), r.positive())]
        calls += [call(r.positive(2, 3), r.positive(3)), call(r.above(3.0), r.above(5.0))]
        return [c.but(constant=(0,)) for c in calls]    # by the first argument: test_accuracy.py


family.untested["_standard_gamma_grad"] = "PyTorch's is rough and has no derivative: test_random.py"
family.untested["_gamma_slope"] = "the derivative by the first argument: test_accuracy.py"


@family("special.zeta")
def _(r):
    return [call(r.above(1.2, 2, 3), r.positive(3)).but(constant=(0,)), call(2.5, r.positive(3)),
            call(r.above(1.2, 3), 2.0).but(constant=(0,)),
            call(r.above(1.2), r.positive()).but(constant=(0,)),
            call(r.above(1.2, 2, 3), r.positive(3)), call(r.above(1.2, 3), 2.0)]


# ---- orthogonal polynomials ---------------------------------------------------------------------

for _kind in ("t", "u", "v", "w"):
    for _prefix in ("special.", "special.shifted_"):
        @family(f"{_prefix}chebyshev_polynomial_{_kind}")
        def _(r):
            degrees = r.integers(0, 6, 3)
            return [call(r.unit(2, 3), n) for n in (0, 1, 2, 5, -1)] + [
                call(r.real(3), 3), call(r.unit(2, 3), degrees), call(0.3, degrees),
                call(np.array([1.0, -1.0, 0.0]), 3).but(smooth=False)]

for _name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
              "legendre_polynomial_p"):
    @family(f"special.{_name}")
    def _(r):
        degrees = r.integers(0, 6, 3)
        return [call(r.unit(2, 3), n) for n in (0, 1, 2, 5, -1)] + [
            call(r.unit(2, 3), degrees), call(0.3, degrees)]


# ---- differences --------------------------------------------------------------------------------


@family("diff")
def _(r):
    return [call(r.real(2, 4)), call(r.real(4, 2), 2, 0), call(r.real(3), 5),
            call(r.real(2, 3), prepend=r.real(2, 1), append=r.real(2, 2)), call(r.bools(5)),
            call(r.integers(0, 9, 5)), call(r.real(3), 0), call(r.complex(3))]


for _name in ("trapezoid", "trapz"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 4)), call(r.real(2, 4), dx=0.5, dim=0),
                call(r.real(2, 4), r.real(4)), call(r.real(2, 4), r.real(2, 4)),
                call(r.real(2, 4), r.real(2), dim=0), call(r.real(1))]


@family("cumulative_trapezoid")
def _(r):
    return [call(r.real(2, 4)), call(r.real(2, 4), dx=0.5, dim=0), call(r.real(2, 4), r.real(4)),
            call(r.real(2, 4), r.real(2, 4))]


@family("gradient")
def _(r):
    return [call(r.real(5)), call(r.real(3, 4)), call(r.real(3, 4), dim=1, spacing=2.0),
            call(r.real(3, 4), spacing=[2.0, 0.5]), call(r.real(5), edge_order=2),
            call(r.real(4), spacing=[np.array([0.0, 1.0, 4.0, 4.5])]),
            call(r.real(4), spacing=[np.array([0.0, 1.0, 4.0, 4.5])], edge_order=2)]


@family("vander")
def _(r):
    return [call(r.real(3)), call(r.real(3), 2), call(r.real(3), increasing=True),
            call(r.integers(1, 5, 3), 4)]
family.untested["polygamma_last"] = "what Tensor.polygamma_ runs"
