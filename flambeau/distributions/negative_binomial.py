"""The negative binomial distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.utils import lazy_property
from flambeau.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    r"""The number of successes before `total_count` failures.

    .. math::
        P(k) = \frac{\Gamma(r + k)}{k!\,\Gamma(r)}\, (1-p)^r p^k

    Args:
        total_count: the number :math:`r` of failures at which to stop; it may be fractional.
        probs: the probability :math:`p` of a success; or
        logits: its log-odds.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.NegativeBinomial(3.0, torch.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self.total_count, = self._take(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * flambeau.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / flambeau.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        """The distribution of the rate, of which this is a mixture of Poisson distributions."""
        return Gamma(self.total_count, flambeau.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=Size()):
        with flambeau.no_grad():
            return flambeau.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        self._check_sample(value)
        r = self.total_count
        unnormalized = r * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalization = (-flambeau.lgamma(r + value) + flambeau.lgamma(1.0 + value)
                         + flambeau.lgamma(r))
        normalization = normalization.masked_fill(r + value == 0.0, 0.0)
        return unnormalized - normalization
