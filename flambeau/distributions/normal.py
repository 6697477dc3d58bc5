"""The normal distribution."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import SymmetricAroundLoc
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _standard_normal, broadcast_all

__all__ = ["Normal"]


class Normal(SymmetricAroundLoc, ExponentialFamily):
    r"""The normal distribution, :math:`p(x) \propto e^{-(x-\mu)^2 / 2\sigma^2}`.

    Args:
        loc: the mean :math:`\mu`.
        scale: the standard deviation :math:`\sigma`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Normal(0.0, 1.0).cdf(torch.tensor(0.0))
        tensor(0.5000)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value):
        self._check_sample(value)
        return (-((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log()
                - math.log(math.sqrt(2 * math.pi)))

    def cdf(self, value):
        self._check_sample(value)
        return 0.5 * (1 + flambeau.erf((value - self.loc) * self.scale.reciprocal()
                                       / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * flambeau.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + flambeau.log(self.scale)

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * flambeau.log(-math.pi / y)
