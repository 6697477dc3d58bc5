"""Student's t-distribution."""

import math

import flambeau
from flambeau import inf, nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    r"""Student's t-distribution, :math:`p(\mu + \sigma y) \propto (1 + y^2/\nu)^{-(\nu+1)/2}`.

    Args:
        df: the degrees of freedom :math:`\nu`.
        loc: :math:`\mu`.
        scale: :math:`\sigma`.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real,
                       "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _members = ("_chi2",)

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        variance = variance.masked_fill((self.df <= 2) & (self.df > 1), inf)
        return variance.masked_fill(self.df <= 1, nan)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * flambeau.rsqrt(z / self.df))

    def _log_normalizer(self):
        return (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
                + flambeau.lgamma(0.5 * self.df) - flambeau.lgamma(0.5 * (self.df + 1.0)))

    def log_prob(self, value):
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * flambeau.log1p(y**2.0 / self.df) - self._log_normalizer()

    def entropy(self):
        df = self.df
        log_beta = (flambeau.lgamma(0.5 * df) + math.lgamma(0.5)
                    - flambeau.lgamma(0.5 * (df + 1)))
        return (self.scale.log()
                + 0.5 * (df + 1) * (flambeau.digamma(0.5 * (df + 1)) - flambeau.digamma(0.5 * df))
                + 0.5 * df.log() + log_beta)
