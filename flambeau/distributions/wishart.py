"""The Wishart distribution."""

import math
import warnings
from numbers import Number

import flambeau
from flambeau import nan
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.multivariate_normal import ByCovariance, one_matrix

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


def _mvdigamma(x, p):
    """The derivative of the logarithm of the multivariate gamma function."""
    halves = flambeau.arange(p, dtype=x.dtype, device=x.device) / 2
    return flambeau.digamma(x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).sum(-1)


class Wishart(ByCovariance, ExponentialFamily):
    r"""The distribution of :math:`X X^T` with `df` columns from a normal distribution.

    Samples come by Bartlett's decomposition. Give one of the three matrices.

    Args:
        df: the degrees of freedom, more than the dimension less 1.
        covariance_matrix: the covariance of the columns; or
        precision_matrix: its inverse; or
        scale_tril: its lower Cholesky factor.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Wishart(torch.tensor([3.0]), torch.eye(2)).mean
        tensor([[[3., 0.],
                 [0., 3.]]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {"covariance_matrix": constraints.positive_definite,
                "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        if isinstance(df, Number):
            batch_shape = flambeau.Size(matrix.shape[:-2])
            self.df = flambeau.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = flambeau.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = "
                             f"{event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur "
                          "for ndim - 1 < df < ndim.", stacklevel=2)
        self._unbroadcasted_scale_tril = self._take_matrix(
            scale_tril, covariance_matrix, precision_matrix)
        steps = flambeau.arange(event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps.expand(batch_shape + (-1,)))

    def _expand_rest(self, new, batch_shape):
        super()._expand_rest(new, batch_shape)
        new._dist_chi2 = self._dist_chi2.expand(batch_shape + self._event_shape[-1:])

    @property
    def _p(self):
        return self._event_shape[-1]

    def _wide(self, value):
        return value.view(self._batch_shape + (1, 1))

    @property
    def mean(self):
        return self._wide(self.df) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self._p - 1
        factor = factor.masked_fill(factor <= 0, nan)
        return self._wide(factor) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._wide(self.df) * (
            v.pow(2) + flambeau.einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape=Size()):
        p = self._p
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = flambeau.tril_indices(p, p, offset=-1)
        noise[..., i, j] = flambeau.randn(
            flambeau.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,),
            dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=Size(), max_try_correction=None):
        """Draw matrices; singular ones are drawn again, up to `max_try_correction` (10) times."""
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = flambeau.Size(sample_shape)
        # PyTorch takes each first sample for a singular one and draws again; so must the stream.
        self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        for _ in range(tries):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling(sample_shape)
            sample = flambeau.where(singular[..., None, None], again, sample)
        return sample

    def log_prob(self, value):
        self._check_sample(value)
        nu, p = self.df, self._p
        factor = self._unbroadcasted_scale_tril
        solved = flambeau.cholesky_solve(value, factor)
        return (-nu * (p * _LOG_2 / 2 + self._half_log_det())
                - flambeau.mvlgamma(nu / 2, p=p)
                + (nu - p - 1) / 2 * flambeau.linalg.slogdet(value).logabsdet
                - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2)

    def entropy(self):
        nu, p = self.df, self._p
        return ((p + 1) * (p * _LOG_2 / 2 + self._half_log_det()) + flambeau.mvlgamma(nu / 2, p=p)
                - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._p - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._p
        half = y + (p + 1) / 2
        return (half * (-flambeau.linalg.slogdet(-2 * x).logabsdet + _LOG_2 * p)
                + flambeau.mvlgamma(half, p=p))
