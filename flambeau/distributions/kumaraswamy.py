"""The Kumaraswamy distribution."""

import flambeau
from flambeau import nan
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moment(a, b, n):
    """The n-th moment, :math:`b B(1 + n/a, b)`."""
    arg = 1 + n / a
    return flambeau.exp(
        flambeau.log(b) + flambeau.lgamma(arg) + flambeau.lgamma(b) - flambeau.lgamma(arg + b))


class Kumaraswamy(TransformedDistribution):
    r"""The Kumaraswamy distribution, :math:`p(x) = a b x^{a-1} (1 - x^a)^{b-1}` on [0, 1].

    Args:
        concentration1: :math:`a`.
        concentration0: :math:`b`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _tensors = "concentration1", "concentration0"

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(flambeau.full_like(self.concentration0, 0),
                       flambeau.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration0.reciprocal()),
                      AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self):
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        log_mode[(b < 1) | (a < 1)] = nan
        return log_mode.exp()

    @property
    def variance(self):
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self):
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = flambeau.digamma(self.concentration0 + 1) + euler_constant
        return (t0 + t1 * harmonic - flambeau.log(self.concentration1)
                - flambeau.log(self.concentration0))
