"""The logistic-normal distribution."""

from flambeau.distributions import constraints
from flambeau.distributions.independent import Independent
from flambeau.distributions.normal import Normal
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    r"""Probabilities that stick breaking makes of independent normal variables.

    Args:
        loc, scale: means and standard deviations of :math:`K` variables, which give
            :math:`K + 1` probabilities.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
        torch.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def _normal(self):
        base = self.base_dist
        return base.base_dist if isinstance(base, Independent) else base

    @property
    def loc(self):
        """The means of the normal variables."""
        return self._normal().loc

    @property
    def scale(self):
        """The standard deviations of the normal variables."""
        return self._normal().scale
