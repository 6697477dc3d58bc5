"""The Bernoulli distribution."""

import flambeau
from flambeau import nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import broadcast_all
from flambeau.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    r"""1 with probability `probs`, else 0.

    Args:
        probs: the probability of 1; or
        logits: its log-odds.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Bernoulli(torch.tensor(0.5)).entropy()
        tensor(0.6931)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = nan
        return mode

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.bernoulli(self.probs.expand(shape))

    def log_prob(self, value):
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = flambeau.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._over_batch(values, expand)

    @property
    def _natural_params(self):
        return (flambeau.logit(self.probs),)

    def _log_normalizer(self, x):
        return flambeau.log(1 + flambeau.exp(x))
