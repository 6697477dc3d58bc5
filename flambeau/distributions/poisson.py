"""The Poisson distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    r"""The Poisson distribution, :math:`P(k) = \lambda^k e^{-\lambda} / k!`.

    Args:
        rate: :math:`\lambda`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.poisson(self.rate.expand(shape))

    def log_prob(self, value):
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (flambeau.log(self.rate),)

    def _log_normalizer(self, x):
        return flambeau.exp(x)
