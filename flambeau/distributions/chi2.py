"""The chi-squared distribution."""

from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    r"""The chi-squared distribution, of the sum of `df` squared standard normal variables.

    Args:
        df: the degrees of freedom.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Chi2(torch.tensor([3.0])).mean
        tensor([3.])
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        """The degrees of freedom."""
        return self.concentration * 2
