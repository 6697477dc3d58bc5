"""The half-Cauchy distribution."""

import math

import flambeau
from flambeau import inf
from flambeau.distributions import constraints
from flambeau.distributions._half import _Half
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(_Half):
    r"""The absolute value of a Cauchy variable around 0.

    Args:
        scale: the scale of that variable.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    @property
    def mean(self):
        return flambeau.full(self._extended_shape(), math.inf, dtype=self.scale.dtype,
                             device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        self._check_sample(value)
        value = flambeau.as_tensor(value, dtype=self.base_dist.scale.dtype,
                                   device=self.base_dist.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return flambeau.where(value >= 0, log_prob, -inf)
