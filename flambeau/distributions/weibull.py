"""The Weibull distribution."""

import flambeau
from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gumbel import euler_constant
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    r"""The Weibull distribution, :math:`P(x > z) = e^{-(z/\lambda)^k}`.

    Args:
        scale: :math:`\lambda`.
        concentration: :math:`k`, also known as shape.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _tensors = "scale", "concentration"

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(flambeau.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._chain(), validate_args=validate_args)

    def _chain(self):
        return [PowerTransform(exponent=self.concentration_reciprocal),
                AffineTransform(loc=0, scale=self.scale)]

    def _expand_rest(self, new, batch_shape):
        super()._expand_rest(new, batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        new.transforms = new._chain()

    @property
    def mean(self):
        return self.scale * flambeau.exp(flambeau.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self):
        inverse = self.concentration_reciprocal
        return self.scale.pow(2) * (flambeau.exp(flambeau.lgamma(1 + 2 * inverse))
                                    - flambeau.exp(2 * flambeau.lgamma(1 + inverse)))

    def entropy(self):
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + flambeau.log(self.scale * inverse) + 1
