"""The categorical distribution."""

import flambeau
from flambeau import nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.distribution import Distribution

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    r"""One of :math:`0, \dots, K-1`, with the given probabilities.

    Args:
        probs: the probabilities along the last dimension, up to a factor; or
        logits: log-probabilities, up to a summand.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
        >>> d.probs, d.mode
        (tensor([0.2500, 0.7500]), tensor(1))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @property
    def _num_events(self):
        return self._param.size()[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return flambeau.full(self._extended_shape(), nan, dtype=self.probs.dtype,
                             device=self.probs.device)

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape=Size()):
        sample_shape = flambeau.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        samples = flambeau.multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._check_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = flambeau.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = flambeau.clamp(self.logits, min=flambeau.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = flambeau.arange(self._num_events, dtype=flambeau.long, device=self._param.device)
        return self._over_batch(values, expand)
