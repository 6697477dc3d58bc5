"""The half-normal distribution."""

import math

import flambeau
from flambeau import inf
from flambeau.distributions import constraints
from flambeau.distributions._half import _Half
from flambeau.distributions.normal import Normal
from flambeau.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(_Half):
    r"""The absolute value of a normal variable around 0.

    Args:
        scale: the standard deviation of that variable.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.HalfNormal(1.0).mean
        tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(),
                         validate_args=validate_args)

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value):
        self._check_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return flambeau.where(value >= 0, log_prob, -inf)
