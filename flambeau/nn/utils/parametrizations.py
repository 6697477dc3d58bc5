"""Parametrizations of weights: orthogonal, of unit length, of spectral norm 1."""

from __future__ import annotations

from enum import Enum, auto

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module

from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# ------------------------------------------------------------------ orthogonal

def _is_orthogonal(Q, eps=None):
    n, k = Q.size(-2), Q.size(-1)
    identity = flambeau.eye(k, dtype=Q.dtype, device=Q.device)
    # A reasonable tolerance for a product of n terms.
    eps = 10.0 * n * flambeau.finfo(Q.dtype).eps
    return flambeau.allclose(Q.mH @ Q, identity, atol=eps)


def _make_orthogonal(A):
    """The Q of A, with the signs of R's diagonal, so that A near the identity gives Q near A."""
    X, tau = flambeau.geqrf(A)
    Q = flambeau.linalg.householder_product(X, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight, orthogonal_map: _OrthMaps, *, use_trivialization=True) -> None:
        super().__init__()
        # Householder reflections cannot be inverted around a base for complex matrices.
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == _OrthMaps.householder:
            Q = self._by_householder(X)
        else:
            Q = self._by_skew_matrix(X, n, k)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    @staticmethod
    def _by_householder(X):
        A = X.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
        Q = flambeau.linalg.householder_product(A, tau)
        # The diagonal of X is 1 or -1, and fixes the signs that reflections cannot reach.
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def _by_skew_matrix(self, X, n, k):
        """exp or Cayley's map of A - Aᴴ, A being the lower triangle; the first k columns."""
        X = X.tril()
        if n != k:
            X = flambeau.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            Q = flambeau.matrix_exp(A)
        else:
            identity = flambeau.eye(n, dtype=A.dtype, device=A.device)
            Q = flambeau.linalg.solve(flambeau.add(identity, A, alpha=-0.5),
                                      flambeau.add(identity, A, alpha=0.5))
        return Q[..., :k] if n != k else Q

    @flambeau.autograd.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. "
                             f"Got a tensor of shape {Q.shape}.")
        original = Q
        n, k = Q.size(-2), Q.size(-1)
        transposed = n < k
        if transposed:
            Q = Q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            return self._without_base(Q, transposed)
        return self._with_base(Q, original, n, k)

    def _without_base(self, Q, transposed):
        """The lower triangle and signs that give Q; only reflections have them in closed form."""
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential "
                "or the Cayley parametrizations when use_trivialization=False.")
        A, _ = flambeau.geqrf(Q)
        A.diagonal(dim1=-2, dim2=-1).sign_()
        A.diagonal(dim1=-2, dim2=-1)[A.diagonal(dim1=-2, dim2=-1) == 0.0] = 1.0
        return A.mT if transposed else A

    def _with_base(self, Q, original, n, k):
        """Q goes into the base, completed to a square; the original becomes neutral."""
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            extra = flambeau.randn(*(Q.size()[:-2] + (n, n - k)), dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(flambeau.cat([Q, extra], dim=-1))
        self.base = Q
        neutral = flambeau.zeros_like(original)
        if self.orthogonal_map == _OrthMaps.householder:
            neutral.diagonal(dim1=-2, dim2=-1).fill_(-1.0)   # a reflection turns it to 1
        return neutral


def orthogonal(module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True):
    r"""Keep a weight orthogonal: :math:`Q^\top Q = I`, or :math:`Q Q^\top = I` for wide ones.

    `orthogonal_map` makes Q of a lower triangle A: ``'matrix_exp'``, :math:`e^{A - A^\top}`;
    ``'cayley'``, :math:`(I + S/2)(I - S/2)^{-1}` with :math:`S = A - A^\top`; ``'householder'``, a
    product of reflections (the default for matrices that are not square). With
    `use_trivialization` Q is relative to a fixed base, which is better conditioned.
    Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, NeurIPS 2019.

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))
        >>> Q = layer.weight
        >>> bool(flambeau.dist(Q.T @ Q, flambeau.eye(20)) < 1e-4)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    parametrization = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module


# ------------------------------------------------------------------ weight norm

class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return flambeau._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return flambeau.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name: str = "weight", dim: int = 0):
    r"""Learn a weight's length and direction apart: :math:`w = g \, v / \|v\|`.

    `dim` is the dimension with a length of its own; None for one length in all. The originals are
    g (`original0`) and v (`original1`). Salimans and Kingma, NeurIPS 2016.

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.size()
        torch.Size([40, 1])
    """
    parametrization = _WeightNorm(dim)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)

    def rename_old_keys(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                        error_msgs):
        # Checkpoints of the hook version have weight_g and weight_v.
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new_key = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new_key] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


# ------------------------------------------------------------------ spectral norm

class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError("Dimension out of range (expected to be in range of "
                             f"[-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but "
                             f"got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            rows, columns = matrix.size()
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            # Good vectors from the start, since the first call may be in evaluation.
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    @flambeau.autograd.no_grad()
    def _power_method(self, weight_mat: Tensor, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            u = flambeau.mv(weight_mat, self._v)
            self._u.copy_(F.normalize(u, dim=0, eps=self.eps))
            v = flambeau.mv(weight_mat.H, self._u)
            self._v.copy_(F.normalize(v, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The graph keeps copies: the buffers are overwritten in the next forward.
        u = self._u.clone(memory_format=flambeau.contiguous_format)
        v = self._v.clone(memory_format=flambeau.contiguous_format)
        return weight / flambeau.vdot(u, flambeau.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        # Any matrix is accepted; what comes out of the forward has norm 1.
        return value


def spectral_norm(module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None):
    r"""Divide a weight by its largest singular value: :math:`W / \sigma(W)`.

    The singular vectors are improved by `n_power_iterations` at every forward in training.
    Miyato et al., Spectral normalization for generative adversarial networks, ICLR 2018.

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
        >>> bool((flambeau.linalg.matrix_norm(layer.weight, 2) - 1).abs() < 0.2)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        nn = flambeau.nn
        transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, parametrization)
    return module
