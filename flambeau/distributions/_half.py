"""What the absolute values of variables that are symmetric around 0 share."""

import math

import flambeau
from flambeau._support.own_methods import define_in_subclasses
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import (
    TransformedDistribution,
    parameter_of_base,
)


@define_in_subclasses("cdf", "entropy", "icdf")
class _Half(TransformedDistribution):
    """The upper half of `base_dist`, with twice its density."""

    support = constraints.nonnegative
    has_rsample = True

    scale = parameter_of_base("scale", "The scale.")
    @property
    def mode(self):
        return flambeau.zeros_like(self.scale)

    def cdf(self, value):
        """2 F(value) - 1, F being that of the whole distribution."""
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        """The inverse of :meth:`cdf`."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        """That of the whole distribution less log 2, in nats."""
        return self.base_dist.entropy() - math.log(2)
