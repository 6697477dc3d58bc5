"""The gamma distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    r"""The gamma distribution, :math:`p(x) \propto x^{\alpha-1} e^{-\beta x}`.

    Args:
        concentration: :math:`\alpha`, also known as shape.
        rate: :math:`\beta`, one over the scale.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Gamma(3.0, 2.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def _tensors(self):
        return "concentration", "rate"

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        value = flambeau._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=flambeau.finfo(value.dtype).tiny)   # log_prob(0) would be inf
        return value

    def log_prob(self, value):
        value = flambeau.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        a, b = self.concentration, self.rate
        return (flambeau.xlogy(a, b) + flambeau.xlogy(a - 1, value) - b * value
                - flambeau.lgamma(a))

    def entropy(self):
        a = self.concentration
        return (a - flambeau.log(self.rate) + flambeau.lgamma(a)
                + (1.0 - a) * flambeau.digamma(a))

    def cdf(self, value):
        self._check_sample(value)
        return flambeau.special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return flambeau.lgamma(x + 1) + (x + 1) * flambeau.log(-y.reciprocal())
