"""The relaxed one-hot categorical distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.one_hot_categorical import _OfCategorical
from flambeau.distributions.transformed_distribution import (
    TransformedDistribution,
    parameter_of_base,
)
from flambeau.distributions.transforms import ExpTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(_OfCategorical, Distribution):
    r"""The logarithm of a relaxed one-hot vector.

    Maddison, Mnih and Teh, *The concrete distribution* (2016), arXiv:1611.00712; Jang, Gu and
    Poole, *Categorical reparameterization with Gumbel-softmax* (2016), arXiv:1611.01144.

    Args:
        temperature: the lower, the nearer the vectors to one-hot ones.
        probs: the probabilities along the last dimension, up to a factor; or
        logits: log-probabilities, up to a summand.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector   # the part of it whose exponentials sum to 1
    has_rsample = True
    _members = ("_categorical",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new.temperature = self.temperature

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(flambeau.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        k = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = flambeau.full_like(self.temperature, float(k)).lgamma() - (
            self.temperature.log().mul(-(k - 1)))
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    r"""Probabilities that are near a one-hot vector, differentiable in the parameters.

    Args:
        temperature: the lower, the nearer.
        probs: the probabilities along the last dimension, up to a factor; or
        logits: log-probabilities, up to a summand.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.RelaxedOneHotCategorical(
        ...     torch.tensor(0.5), torch.tensor([0.25, 0.75]))
        >>> d.rsample().sum().round()
        tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = parameter_of_base("temperature", "The temperature.")
    logits = parameter_of_base("logits", "Normalised log-probabilities.")
    probs = parameter_of_base("probs", "Probabilities.")
