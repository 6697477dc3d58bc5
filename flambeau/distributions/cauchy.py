"""The Cauchy distribution."""

import math

import flambeau
from flambeau import inf, nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    r"""The Cauchy distribution, :math:`p(x) = 1 / (\pi\gamma (1 + ((x - m)/\gamma)^2))`.

    It is the ratio of two centred normal variables, and has no mean.

    Args:
        loc: the median :math:`m`.
        scale: half the width :math:`\gamma` at half the height.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Cauchy(1.0, 2.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self):
        return flambeau.full(self._extended_shape(), nan, dtype=self.loc.dtype,
                             device=self.loc.device)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return flambeau.full(self._extended_shape(), inf, dtype=self.loc.dtype,
                             device=self.loc.device)

    def rsample(self, sample_shape=Size()):
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        self._check_sample(value)
        return (-math.log(math.pi) - self.scale.log()
                - (((value - self.loc) / self.scale) ** 2).log1p())

    def cdf(self, value):
        self._check_sample(value)
        return flambeau.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return flambeau.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
