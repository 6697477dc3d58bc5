"""Mixtures of distributions of one family."""

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.constraints import MixtureSameFamilyConstraint
from flambeau.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    r"""A mixture, :math:`p(x) = \sum_k w_k\, p_k(x)`, of distributions of the same family.

    Args:
        mixture_distribution: a categorical distribution, with the weights.
        component_distribution: the components, along the last batch dimension.

    Example::

        >>> import flambeau as torch
        >>> from flambeau.distributions import Categorical, MixtureSameFamily, Normal
        >>> d = MixtureSameFamily(
        ...     Categorical(torch.ones(2)), Normal(torch.tensor([0.0, 2.0]), torch.ones(2)))
        >>> d.mean
        tensor(1.)
    """

    arg_constraints = {}
    _members = ("_mixture_distribution",)
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of "
                             "torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of "
                             "torch.distributions.Distribution")
        weights = mixture_distribution.batch_shape
        components = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(weights), reversed(components), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(f"`mixture_distribution.batch_shape` ({weights}) is not "
                                 "compatible with `component_distribution.batch_shape`"
                                 f"({components})")
        count = mixture_distribution.logits.shape[-1]
        if count != component_distribution.batch_shape[-1]:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             "`component_distribution.batch_shape[-1]` "
                             f"({component_distribution.batch_shape[-1]})")
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(components, event_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,))
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The distribution of the components' numbers."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    def _mean_over_components(self, values):
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return flambeau.sum(probs * values, dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._mean_over_components(self.component_distribution.mean)

    @property
    def variance(self):
        components = self.component_distribution
        within = self._mean_over_components(components.variance)
        return within + self._mean_over_components(
            (components.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x):
        cdf = self.component_distribution.cdf(self._pad(x))
        return flambeau.sum(cdf * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x):
        self._check_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        log_weights = flambeau.log_softmax(self.mixture_distribution.logits, dim=-1)
        return flambeau.logsumexp(log_prob + log_weights, dim=-1)

    def sample(self, sample_shape=Size()):
        sample_shape = flambeau.Size(sample_shape)
        with flambeau.no_grad():
            which = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            which = which.reshape(which.shape + (1,) * (self._event_ndims + 1))
            which = which.repeat((1,) * len(which.shape[:dim]) + (1,) + self.event_shape)
            return flambeau.gather(values, dim, which).squeeze(dim)

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        """Weights with dimensions for the components' batch and event."""
        missing = (self.component_distribution.batch_shape[:-1].numel() and len(
            self.batch_shape)) - len(self.mixture_distribution.batch_shape)
        shape = x.shape[:-1] + (1,) * max(missing, 0) + x.shape[-1:] + (1,) * self._event_ndims
        return x.reshape(shape)

    def __repr__(self):
        return (f"MixtureSameFamily(\n  {self.mixture_distribution},\n  "
                f"{self.component_distribution})")
