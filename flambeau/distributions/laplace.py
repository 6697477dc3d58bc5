"""The Laplace distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import SymmetricAroundLoc
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(SymmetricAroundLoc, Distribution):
    r"""The Laplace distribution, :math:`p(x) = e^{-|x-\mu|/b} / 2b`.

    Args:
        loc: the mean :math:`\mu`.
        scale: :math:`b`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Laplace(0.0, 2.0).variance
        tensor(8.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2**0.5 * self.scale

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(flambeau.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * flambeau.log1p(-u.abs())

    def log_prob(self, value):
        self._check_sample(value)
        return -flambeau.log(2 * self.scale) - flambeau.abs(value - self.loc) / self.scale

    def cdf(self, value):
        self._check_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * flambeau.expm1(-distance.abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * flambeau.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + flambeau.log(2 * self.scale)
