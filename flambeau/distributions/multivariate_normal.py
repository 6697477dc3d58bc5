"""The multivariate normal distribution."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions._parameters import SymmetricAroundLoc
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix, vector):
    """Matrix times vector, over batches."""
    return flambeau.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, x):
    r"""The square of :math:`L^{-1} x`, :math:`x^T M^{-1} x` with :math:`M = L L^T`."""
    return flambeau.linalg.solve_triangular(
        factor, x.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse, without inverting twice.

    The Cholesky factor of the matrix turned by half a circle, turned back, is the inverse of the
    factor's transpose.
    """
    turned = flambeau.linalg.cholesky(flambeau.flip(precision, (-2, -1)))
    inverse = flambeau.transpose(flambeau.flip(turned, (-2, -1)), -2, -1)
    eye = flambeau.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return flambeau.linalg.solve_triangular(inverse, eye, upper=False)


class ByCovariance:
    """Mixin of what is given by one of a covariance, its inverse, or its Cholesky factor."""

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return flambeau.matmul(factor, factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return flambeau.cholesky_inverse(self._unbroadcasted_scale_tril).expand(
            self._matrix_shape())

    def _matrix_shape(self):
        return self._batch_shape + self._event_shape[-1:] * 2

    def _half_log_det(self):
        """Half the logarithm of the covariance's determinant."""
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _take_matrix(self, scale_tril, covariance_matrix, precision_matrix):
        """The unbroadcast Cholesky factor of what was given."""
        if scale_tril is not None:
            return scale_tril
        if covariance_matrix is not None:
            return flambeau.linalg.cholesky(covariance_matrix)
        return _precision_to_scale_tril(precision_matrix)

    def _expand_rest(self, new, batch_shape):
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril


def one_matrix(covariance_matrix, precision_matrix, scale_tril, error=ValueError):
    """The name and value of the one matrix that is given; raises `error` if it is not one."""
    given = [(name, value) for name, value in (
        ("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
        ("precision_matrix", precision_matrix)) if value is not None]
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                    "specified.")
    return given[0]


class MultivariateNormal(SymmetricAroundLoc, ByCovariance, Distribution):
    r"""The normal distribution, :math:`p(x) \propto e^{-(x-\mu)^T\Sigma^{-1}(x-\mu)/2}`.

    Give one of the three matrices; the Cholesky factor is what all computations use.

    Args:
        loc: the mean :math:`\mu`.
        covariance_matrix: :math:`\Sigma`, positive definite; or
        precision_matrix: its inverse; or
        scale_tril: its lower Cholesky factor.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> d.entropy()
        tensor(2.8379)
    """

    arg_constraints = {"loc": constraints.real_vector,
                       "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            word = " matrix" if name == "scale_tril" else ""
            raise ValueError(f"{name}{word} must be at least two-dimensional, with optional "
                             "leading batch dimensions")
        batch_shape = flambeau.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = self._take_matrix(
            scale_tril, covariance_matrix, precision_matrix)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(
            self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        self._check_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        dims = self._event_shape[0]
        return -0.5 * (dims * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self):
        dims = self._event_shape[0]
        entropy = 0.5 * dims * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
