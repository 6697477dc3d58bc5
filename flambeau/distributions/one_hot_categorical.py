"""One-hot vectors of categorical draws."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class _OfCategorical:
    """Mixin of a distribution that is made of a categorical one, `_categorical`."""

    @property
    def _param(self):
        return self._categorical._param

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self):
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Normalised log-probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape


class OneHotCategorical(_OfCategorical, Distribution):
    r"""A vector with a single 1, at a place with the given probabilities.

    Args:
        probs: the probabilities along the last dimension, up to a factor; or
        logits: log-probabilities, up to a summand.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _members = ("_categorical",)

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    @property
    def mean(self):
        return self._categorical.probs

    @property
    def mode(self):
        mode = self._categorical.probs.argmax(axis=-1)
        return flambeau.nn.functional.one_hot(
            mode, num_classes=self._categorical.probs.shape[-1]).to(self._categorical.probs)

    @property
    def variance(self):
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape=Size()):
        indices = self._categorical.sample(flambeau.Size(sample_shape))
        return flambeau.nn.functional.one_hot(
            indices, self._categorical._num_events).to(self._categorical.probs)

    def log_prob(self, value):
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self.event_shape[0]
        values = flambeau.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is that of the probabilities.

    Bengio et al., *Estimating or propagating gradients through stochastic neurons for conditional
    computation* (2013), arXiv:1308.3432. The arguments are those of :class:`OneHotCategorical`.
    """

    has_rsample = True

    def rsample(self, sample_shape=Size()):
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())
