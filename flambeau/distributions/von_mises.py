"""The von Mises distribution."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun, 9.8.1 to 9.8.4: polynomials in (x/3.75)^2, and in 3.75/x beyond.
_SMALL = ((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
          (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3))
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1,
     0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1,
     -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)


def _polynomial(x, coefficients):
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + x * result
    return result


def _log_modified_bessel_fn(x, order=0):
    """The logarithm of the modified Bessel function of order 0 or 1, for positive arguments."""
    y = (x / 3.75).pow(2)
    small = _polynomial(y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return flambeau.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    r"""The von Mises distribution of angles, :math:`p(x) \propto e^{\kappa\cos(x-\mu)}`.

    Samples come by rejection, after Best and Fisher, *Efficient simulation of the von Mises
    distribution* (1979).

    Args:
        loc: the mean direction :math:`\mu`, in radians.
        concentration: :math:`\kappa`.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.VonMises(torch.tensor([1.0]), torch.tensor([1.0]))
        >>> bool((d.sample((10,)).abs() <= torch.pi).all())
        True
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value):
        self._check_sample(value)
        return (self.concentration * flambeau.cos(value - self.loc) - math.log(2 * math.pi)
                - _log_modified_bessel_fn(self.concentration, order=0))

    @lazy_property
    def _loc(self):
        return self.loc.to(flambeau.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(flambeau.double)

    @lazy_property
    def _proposal_r(self):
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        series = 1 / kappa + kappa   # about 0, where the formula cancels
        return flambeau.where(kappa < 1e-5, series, r)

    @flambeau.no_grad()
    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        x = flambeau.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        kappa, r = self._concentration, self._proposal_r
        done = flambeau.zeros(shape, dtype=flambeau.bool, device=self.loc.device)
        while not done.all():
            u = flambeau.rand((3,) + shape, dtype=self._loc.dtype, device=self.loc.device)
            u1, u2, u3 = u.unbind()
            z = flambeau.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = flambeau.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        x = (x + math.pi + self._loc) % (2 * math.pi) - math.pi
        return x.to(self.loc.dtype)

    @property
    def mean(self):
        """The mean direction."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance."""
        return 1 - (_log_modified_bessel_fn(self.concentration, order=1)
                    - _log_modified_bessel_fn(self.concentration, order=0)).exp()
