"""The continuous Bernoulli distribution."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)
from flambeau.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    r"""The density :math:`p(x) = C(\lambda)\, \lambda^x (1-\lambda)^{1-x}` on [0, 1].

    Near :math:`\lambda = 1/2` the formulas are 0/0; between `lims` their Taylor series are used.
    Loaiza-Ganem and Cunningham, *The continuous Bernoulli: fixing a pervasive error in
    variational autoencoders* (2019), arXiv:1907.06845.

    Args:
        probs: :math:`\lambda`, which is not the mean; or
        logits: its log-odds.
        lims: where to use the Taylor series.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.ContinuousBernoulli(torch.tensor([0.5])).mean
        tensor([0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(
                    self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self):
        """Probabilities, kept off 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _expand_rest(self, new, batch_shape):
        new._lims = self._lims

    def _outside_unstable_region(self):
        low, high = self._lims
        return flambeau.max(flambeau.le(self.probs, low), flambeau.gt(self.probs, high))

    def _cut_probs(self):
        """The probabilities, moved out of the region where the formulas are unstable."""
        return flambeau.where(self._outside_unstable_region(), self.probs,
                              self._lims[0] * flambeau.ones_like(self.probs))

    def _choose(self, formula, taylor):
        return flambeau.where(self._outside_unstable_region(), formula, taylor)

    def _cont_bern_log_norm(self):
        """:math:`\\log C`."""
        cut = self._cut_probs()
        below = flambeau.where(flambeau.le(cut, 0.5), cut, flambeau.zeros_like(cut))
        above = flambeau.where(flambeau.ge(cut, 0.5), cut, flambeau.ones_like(cut))
        log_norm = flambeau.log(flambeau.abs(flambeau.log1p(-cut) - flambeau.log(cut)))
        log_norm = log_norm - flambeau.where(
            flambeau.le(cut, 0.5), flambeau.log1p(-2.0 * below), flambeau.log(2.0 * above - 1.0))
        x = flambeau.pow(self.probs - 0.5, 2)
        return self._choose(log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (flambeau.log1p(-cut) - flambeau.log(cut))
        x = self.probs - 0.5
        return self._choose(mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * flambeau.pow(x, 2)) * x)

    @property
    def stddev(self):
        return flambeau.sqrt(self.variance)

    @property
    def variance(self):
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / flambeau.pow(1.0 - 2.0 * cut, 2) + 1.0 / flambeau.pow(
            flambeau.log1p(-cut) - flambeau.log(cut), 2)
        x = flambeau.pow(self.probs - 0.5, 2)
        return self._choose(variance, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def _uniform(self, sample_shape):
        return flambeau.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype,
                             device=self.probs.device)

    def sample(self, sample_shape=Size()):
        u = self._uniform(sample_shape)
        with flambeau.no_grad():
            return self.icdf(u)

    def rsample(self, sample_shape=Size()):
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value):
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return (-binary_cross_entropy_with_logits(logits, value, reduction="none")
                + self._cont_bern_log_norm())

    def cdf(self, value):
        self._check_sample(value)
        cut = self._cut_probs()
        cdfs = (flambeau.pow(cut, value) * flambeau.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (
            2.0 * cut - 1.0)
        inside = self._choose(cdfs, value)
        return flambeau.where(
            flambeau.le(value, 0.0), flambeau.zeros_like(value),
            flambeau.where(flambeau.ge(value, 1.0), flambeau.ones_like(value), inside))

    def icdf(self, value):
        cut = self._cut_probs()
        formula = (flambeau.log1p(-cut + value * (2.0 * cut - 1.0)) - flambeau.log1p(-cut)) / (
            flambeau.log(cut) - flambeau.log1p(-cut))
        return self._choose(formula, value)

    def entropy(self):
        log_not = flambeau.log1p(-self.probs)
        log_probs = flambeau.log(self.probs)
        return self.mean * (log_not - log_probs) - self._cont_bern_log_norm() - log_not

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = flambeau.max(flambeau.le(x, low), flambeau.gt(x, high))
        cut = flambeau.where(outside, x, low * flambeau.ones_like(x))
        log_norm = flambeau.log(flambeau.abs(flambeau.special.expm1(cut))) - flambeau.log(
            flambeau.abs(cut))
        taylor = 0.5 * x + flambeau.pow(x, 2) / 24.0 - flambeau.pow(x, 4) / 2880.0
        return flambeau.where(outside, log_norm, taylor)
