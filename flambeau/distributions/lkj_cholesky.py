"""The LKJ distribution of correlation matrices."""

import math

import flambeau
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.beta import Beta
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    r"""Cholesky factors of correlation matrices with density :math:`\propto |M|^{\eta-1}`.

    With :math:`\eta = 1` all correlation matrices are equally likely. Samples come by the onion
    method: Lewandowski, Kurowicka and Joe, *Generating random correlation matrices based on vines
    and extended onion method* (2009).

    Args:
        dim: the size of the matrices.
        concentration: :math:`\eta`.

    Example::

        >>> import flambeau as torch
        >>> factor = torch.distributions.LKJCholesky(3, 0.5).sample()
        >>> (factor @ factor.T).diagonal().round()
        tensor([1., 1., 1.])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found "
                             f"dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        offset = flambeau.arange(self.dim - 1, dtype=self.concentration.dtype,
                                 device=self.concentration.device)
        offset = flambeau.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (self.dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, flambeau.Size((dim, dim)), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape=Size()):
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = flambeau.randn(self._extended_shape(sample_shape), dtype=y.dtype,
                                device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)   # the first row has no direction, 0/0
        w = flambeau.sqrt(y) * direction
        tiny = flambeau.finfo(w.dtype).tiny
        diagonal = flambeau.clamp(1 - flambeau.sum(w**2, dim=-1), min=tiny).sqrt()
        return w + flambeau.diag_embed(diagonal)

    def log_prob(self, value):
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = flambeau.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = flambeau.sum(order * diagonal.log(), dim=-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        return unnormalized - (0.5 * less * math.log(math.pi) + flambeau.mvlgamma(
            alpha - 0.5, less) - flambeau.lgamma(alpha) * less)
