"""The relaxed Bernoulli distribution."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import ProbsOrLogits
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transformed_distribution import (
    TransformedDistribution,
    parameter_of_base,
)
from flambeau.distributions.transforms import SigmoidTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    r"""The log-odds of a relaxed Bernoulli variable.

    Maddison, Mnih and Teh, *The concrete distribution* (2016), arXiv:1611.00712; Jang, Gu and
    Poole, *Categorical reparameterization with Gumbel-softmax* (2016), arXiv:1611.01144.

    Args:
        temperature: the lower, the nearer the values to 0 and 1.
        probs: the probability of 1; or
        logits: its log-odds.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new.temperature = self.temperature

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(flambeau.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    r"""Numbers in (0, 1) that are near 0 and 1, differentiable in the parameters.

    Args:
        temperature: the lower, the nearer.
        probs: the probability of 1; or
        logits: its log-odds.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(0.5), torch.tensor([0.1, 0.9]))
        >>> d.rsample().shape
        torch.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    temperature = parameter_of_base("temperature", "The temperature.")
    logits = parameter_of_base("logits", "The log-odds of 1.")
    probs = parameter_of_base("probs", "The probability of 1.")
