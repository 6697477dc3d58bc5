"""Exponential families."""

import flambeau
from flambeau.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""Base of the distributions whose density has the form

    .. math::
        p(x; \theta) = \exp(\langle t(x), \theta\rangle - F(\theta) + k(x))

    with natural parameters :math:`\theta`, sufficient statistic :math:`t`, log-normaliser
    :math:`F` and carrier measure :math:`k`. The entropy
    :math:`F(\theta) - \langle\theta, \nabla F(\theta)\rangle - \operatorname E[k(x)]` and the
    Kullback-Leibler divergence follow from :math:`F` by automatic differentiation.
    """

    @property
    def _natural_params(self):
        """The tuple of natural parameters."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        """:math:`F`, of the natural parameters."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The expectation of the carrier measure."""
        raise NotImplementedError

    def entropy(self):
        """The entropy, from the gradient of the log-normaliser."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with flambeau.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = flambeau.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = -self._mean_carrier_measure + normalizer
        dims = len(self._batch_shape)
        for param, gradient in zip(params, gradients, strict=True):
            product = param * gradient
            result = result - product.reshape(self._batch_shape + (-1,)).sum(-1) if (
                product.dim() > dims) else result - product
        return result
