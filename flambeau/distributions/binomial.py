"""The binomial distribution."""

import flambeau
from flambeau import Tensor
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.distribution import Distribution

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    r"""The number of successes: :math:`P(k) = \binom{n}{k} p^k (1-p)^{n-k}`.

    Args:
        total_count: the number :math:`n` of trials.
        probs: the probability :math:`p` of a success; or
        logits: its log-odds.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.Binomial(4, torch.tensor(0.5))
        >>> d.log_prob(torch.tensor(2.0)).exp()
        tensor(0.3750)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer,
                       "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: int | Tensor = 1, probs=None, logits=None, validate_args=None):
        self.total_count, = self._take(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with flambeau.no_grad():
            return flambeau.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._check_sample(value)
        n, logits = self.total_count, self.logits
        binomial = flambeau.lgamma(n + 1) - flambeau.lgamma(value + 1) - flambeau.lgamma(
            n - value + 1)
        # log(1 + exp(logits)), without overflow; with the slope 1/2 at 0
        softplus = (logits + logits.abs()) / 2 + flambeau.log1p(flambeau.exp(-logits.abs()))
        return value * logits + binomial - n * softplus

    def entropy(self):
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(flambeau.exp(log_prob) * log_prob).sum(0)

    def _one_count(self, asker):
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asker}`.")
        return n

    def enumerate_support(self, expand=True):
        n = self._one_count("enumerate_support")
        values = flambeau.arange(1 + n, dtype=self._param.dtype, device=self._param.device)
        return self._over_batch(values, expand)
