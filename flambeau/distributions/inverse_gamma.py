"""The inverse gamma distribution."""

import flambeau
from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.transformed_distribution import (
    TransformedDistribution,
    parameter_of_base,
)
from flambeau.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    r"""The distribution of :math:`1/x` with :math:`x` from a gamma distribution.

    Args:
        concentration: :math:`\alpha` of that distribution.
        rate: its :math:`\beta`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.InverseGamma(3.0, 2.0).mean
        tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())),
                         validate_args=validate_args)

    concentration = parameter_of_base("concentration", "The concentration.")
    rate = parameter_of_base("rate", "The rate.")
    @property
    def mean(self):
        mean = self.rate / (self.concentration - 1)
        return flambeau.where(self.concentration > 1, mean, flambeau.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        variance = self.rate.square() / ((a - 1).square() * (a - 2))
        return flambeau.where(a > 2, variance, flambeau.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
