"""The Gumbel distribution."""

import math

import flambeau
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, ExpTransform
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    r"""The Gumbel distribution, :math:`P(x \le z) = e^{-e^{-(z-\mu)/\beta}}`.

    Args:
        loc: the mode :math:`\mu`.
        scale: :math:`\beta`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _tensors = "loc", "scale"

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = flambeau.finfo(self.loc.dtype)
        low = flambeau.full_like(self.loc, finfo.tiny)
        base = Uniform(low, flambeau.full_like(self.loc, 1 - finfo.eps),
                       validate_args=validate_args)
        # from a uniform variable: minus the logarithm, twice, then shift and scale
        transforms = [ExpTransform().inv,
                      AffineTransform(loc=0, scale=-flambeau.ones_like(self.scale)),
                      ExpTransform().inv,
                      AffineTransform(loc=self.loc, scale=-self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value):
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
