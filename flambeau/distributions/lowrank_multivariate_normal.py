"""The multivariate normal distribution with a covariance of low rank, plus a diagonal."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import SymmetricAroundLoc
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from flambeau.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(w, d):
    r"""The Cholesky factor of :math:`I + W^T D^{-1} W`, a small matrix."""
    scaled = w.mT / d.unsqueeze(-2)
    small = flambeau.matmul(scaled, w).contiguous()
    small.view(-1, w.size(-1) ** 2)[:, ::w.size(-1) + 1] += 1
    return flambeau.linalg.cholesky(small)


def _batch_lowrank_logdet(w, d, capacitance_tril):
    r"""By the matrix determinant lemma, :math:`\log|WW^T + D| = \log|C| + \log|D|`."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + d.log().sum(-1)


def _batch_lowrank_mahalanobis(w, d, x, capacitance_tril):
    r"""By the Woodbury identity, :math:`x^TD^{-1}x - x^TD^{-1}W C^{-1} W^TD^{-1}x`."""
    scaled = w.mT / d.unsqueeze(-2)
    return (x.pow(2) / d).sum(-1) - _batch_mahalanobis(capacitance_tril, _batch_mv(scaled, x))


class LowRankMultivariateNormal(SymmetricAroundLoc, Distribution):
    r"""The normal distribution with the covariance :math:`WW^T + \operatorname{diag}(d)`.

    With :math:`W` of the shape n×k it costs :math:`O(nk^2)`, thanks to the Woodbury identity and
    the matrix determinant lemma.

    Args:
        loc: the mean.
        cov_factor: :math:`W`.
        cov_diag: :math:`d`.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.LowRankMultivariateNormal(
        ...     torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
        >>> d.variance
        tensor([2., 1.])
    """

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape {event_shape}")
        vector, diagonal = loc.unsqueeze(-1), cov_diag.unsqueeze(-1)
        try:
            vector, self.cov_factor, diagonal = flambeau.broadcast_tensors(
                vector, cov_factor, diagonal)
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}") from error
        self.loc = vector[..., 0]
        self.cov_diag = diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril

    @lazy_property
    def variance(self):
        return (self._unbroadcasted_cov_factor.pow(2).sum(-1)
                + self._unbroadcasted_cov_diag).expand(self._batch_shape + self._event_shape)

    def _matrix_shape(self):
        return self._batch_shape + self._event_shape * 2

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        n = self._event_shape[0]
        inner = flambeau.matmul(scaled, scaled.mT).contiguous()
        inner.view(-1, n * n)[:, ::n + 1] += 1
        return (root * flambeau.linalg.cholesky(inner)).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        covariance = flambeau.matmul(w, w.mT) + flambeau.diag_embed(self._unbroadcasted_cov_diag)
        return covariance.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        d = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
        a = flambeau.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return (flambeau.diag_embed(d.reciprocal()) - a.mT @ a).expand(self._matrix_shape())

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        w_shape = shape[:-1] + self.cov_factor.shape[-1:]
        eps_w = _standard_normal(w_shape, dtype=self.loc.dtype, device=self.loc.device)
        eps_d = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return (self.loc + _batch_mv(self._unbroadcasted_cov_factor, eps_w)
                + self._unbroadcasted_cov_diag.sqrt() * eps_d)

    def log_prob(self, value):
        self._check_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc,
            self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def _log_det(self):
        return _batch_lowrank_logdet(self._unbroadcasted_cov_factor,
                                     self._unbroadcasted_cov_diag, self._capacitance_tril)

    def entropy(self):
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
