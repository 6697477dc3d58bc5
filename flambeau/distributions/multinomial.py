"""The multinomial distribution."""

import flambeau
from flambeau import inf
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.one_hot_categorical import _OfCategorical
from flambeau.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(_OfCategorical, Distribution):
    r"""How often each of :math:`K` categories comes up in `total_count` draws.

    Args:
        total_count: the number of draws, one for the whole batch.
        probs: the probabilities along the last dimension, up to a factor; or
        logits: log-probabilities, up to a summand.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.Multinomial(4, torch.tensor([0.5, 0.5]))
        >>> d.sample().sum(), d.mean
        (tensor(4.), tensor([2., 2.]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _members = ("_categorical",)

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new.total_count = self.total_count
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        sample_shape = flambeau.Size(sample_shape)
        draws = self._categorical.sample(flambeau.Size((self.total_count,)) + sample_shape)
        draws = draws.permute(*range(1, draws.dim()), 0)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, draws, flambeau.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self):
        dtype = flambeau.promote_types(self.probs.dtype, flambeau.get_default_dtype())
        n = flambeau.tensor(self.total_count, dtype=dtype, device=self.probs.device)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = flambeau.exp(self._binomial.log_prob(values))
        terms = (weights * flambeau.lgamma(values + 1)).sum([0, -1])
        return n * self._categorical.entropy() - flambeau.lgamma(n + 1) + terms

    def log_prob(self, value):
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=flambeau.contiguous_format)
        logits[(value == 0) & (logits == -inf)] = 0
        return (flambeau.lgamma(value.sum(-1) + 1) - flambeau.lgamma(value + 1).sum(-1)
                + (logits * value).sum(-1))
