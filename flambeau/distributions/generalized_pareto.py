"""The generalised Pareto distribution."""

import math

import flambeau
from flambeau import nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    r"""The generalised Pareto distribution, of excesses over a threshold.

    .. math::
        P(x > z) = \Big(1 + \xi\,\frac{z - \mu}{\sigma}\Big)^{-1/\xi}

    and :math:`e^{-(z-\mu)/\sigma}` for :math:`\xi = 0`.

    Args:
        loc: :math:`\mu`, the least value.
        scale: :math:`\sigma`.
        concentration: :math:`\xi`; if negative, there is a greatest value.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(flambeau.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _is_exponential(self):
        return flambeau.isclose(self.concentration, flambeau.zeros_like(self.concentration))

    def _z(self, x):
        return (x - self.loc) / self.scale

    def _safe_concentration(self):
        """The concentration, with 1 where it is 0 and another formula holds."""
        return flambeau.where(self._is_exponential(), flambeau.ones_like(self.concentration),
                              self.concentration)

    def log_prob(self, value):
        self._check_sample(value)
        z, xi = self._z(value), self._safe_concentration()
        heavy = -(1 / xi + 1) * flambeau.log1p(xi * z)
        return flambeau.where(self._is_exponential(), -z, heavy) - self.scale.log()

    def log_survival_function(self, value):
        """The logarithm of the probability of more than `value`."""
        self._check_sample(value)
        z, xi = self._z(value), self._safe_concentration()
        return flambeau.where(self._is_exponential(), -z, -flambeau.log1p(xi * z) / xi)

    def log_cdf(self, value):
        """The logarithm of :meth:`cdf`."""
        return flambeau.log1p(-flambeau.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return flambeau.exp(self.log_cdf(value))

    def icdf(self, value):
        xi = self._safe_concentration()
        log_survival = flambeau.log1p(-value)
        return flambeau.where(
            self._is_exponential(), self.loc - self.scale * log_survival,
            self.loc + self.scale * flambeau.expm1(-xi * log_survival) / xi)

    @property
    def mean(self):
        xi = self.concentration
        return flambeau.where(xi < 1, self.loc + self.scale / (1 - xi), nan)

    @property
    def variance(self):
        xi = self.concentration
        variance = self.scale**2 / ((1 - xi) ** 2 * (1 - 2 * xi))
        return flambeau.where(xi < 0.5, variance, nan)

    def entropy(self):
        return flambeau.broadcast_to(
            flambeau.log(self.scale) + self.concentration + 1, self._batch_shape)

    @property
    def mode(self):
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = self.loc - self.scale / self.concentration
        return constraints.interval(
            self.loc, flambeau.where(self.concentration < 0, upper, math.inf))
