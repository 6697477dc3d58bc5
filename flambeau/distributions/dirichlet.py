"""The Dirichlet distribution."""

import flambeau
from flambeau.autograd.function import Function, once_differentiable
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """Draws that are differentiable in the concentrations, by implicit reparametrisation."""

    @staticmethod
    def forward(ctx, concentration):
        x = flambeau._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        grad = flambeau._dirichlet_grad(x, concentration, total)
        return grad * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    r"""The Dirichlet distribution of probabilities, :math:`p(x)\propto\prod_k x_k^{\alpha_k-1}`.

    Args:
        concentration: :math:`\alpha`, along the last dimension.

    Example::

        >>> import flambeau as torch
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return _Dirichlet.apply(self.concentration.expand(shape))

    def log_prob(self, value):
        self._check_sample(value)
        a = self.concentration
        return (flambeau.xlogy(a - 1.0, value).sum(-1) + flambeau.lgamma(a.sum(-1))
                - flambeau.lgamma(a).sum(-1))

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        mode[flat] = flambeau.nn.functional.one_hot(
            mode[flat].argmax(dim=-1), self.concentration.shape[-1]).to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self):
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (flambeau.lgamma(self.concentration).sum(-1) - flambeau.lgamma(total)
                - (k - total) * flambeau.digamma(total)
                - ((self.concentration - 1.0) * flambeau.digamma(self.concentration)).sum(-1))

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - flambeau.lgamma(x.sum(-1))
