"""Distributions of transformed random variables."""

import flambeau
from flambeau._support.own_methods import define_in_subclasses
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.independent import Independent
from flambeau.distributions.transforms import ComposeTransform, Transform
from flambeau.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


def parameter_of_base(name, doc):
    """A property: the parameter of that name of the base distribution."""
    return property(lambda self: getattr(self.base_dist, name), doc=doc)


@define_in_subclasses("expand", further=True)
class TransformedDistribution(Distribution):
    r"""The distribution of :math:`y = f(x)` with :math:`x` from a base distribution.

    .. math::
        \log p(y) = \log p_x(f^{-1}(y)) + \log\Big|\det\frac{dx}{dy}\Big|

    Args:
        base_distribution: the distribution of :math:`x`.
        transforms: :math:`f`, a transform or a list of them, the first one first.

    Example::

        >>> import flambeau as torch
        >>> from flambeau.distributions import (
        ...     AffineTransform, SigmoidTransform, TransformedDistribution, Uniform)
        >>> logistic = TransformedDistribution(
        ...     Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(2.0, 3.0)])
        >>> logistic.cdf(torch.tensor(2.0))
        tensor(0.5000)
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError(
                    "transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(
                f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {base_shape}.")
        forward_shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(forward_shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(
                expanded[:len(expanded) - base_event_dim])
        more = transform.domain.event_dim - base_event_dim
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event_dim = max(transform.codomain.event_dim, base_event_dim + change)
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    _tensors: tuple[str, ...] = ()

    def expand(self, batch_shape, _instance=None):
        for name in self._tensors:          # they say first what is wrong with the shape
            getattr(self, name).expand(batch_shape)
        return super().expand(batch_shape, _instance)

    def _expand_rest(self, new, batch_shape):
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        if len(self.event_shape) > support.event_dim:
            support = constraints.independent(
                support, len(self.event_shape) - support.event_dim)
        return support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def sample(self, sample_shape=Size()):
        with flambeau.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=Size()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        self._check_sample(value)
        event_dim = len(self.event_shape)
        log_prob = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            y = x
        return log_prob + _sum_rightmost(
            self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """`value` where the transform increases, one minus it where it decreases."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
