"""Kullback-Leibler divergences between pairs of distributions."""

import math
import warnings
from functools import total_ordering
from typing import Any

import flambeau
from flambeau import inf
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.distribution import Distribution  # noqa: F401
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.independent import Independent
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from flambeau.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from flambeau.distributions.normal import Normal
from flambeau.distributions.one_hot_categorical import OneHotCategorical
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Any] = {}   # (type of p, type of q): function
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}    # the same for subclasses that were looked up


def register_kl(type_p, type_q):
    """Register, as a decorator, the function that computes `KL(p || q)` for two types.

    A call finds the function for the most specific registered types. If that is ambiguous, a
    warning says so; register a function for the ambiguous pair.

    Example::

        >>> from flambeau.distributions import Normal, kl_divergence, register_kl
        >>> class MyNormal(Normal): pass
        >>> @register_kl(MyNormal, MyNormal)
        ... def kl_mine(p, q):
        ...     return 42
        >>> kl_divergence(MyNormal(0.0, 1.0), MyNormal(0.0, 1.0))
        42
    """
    for kind in (type_p, type_q):
        issubclass(kind, object)            # other libraries register bases of their own

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


@total_ordering
class _Match:
    """A tuple of types; the smaller of two is the more specific in every place."""

    __slots__ = ("types",)

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __le__(self, other):
        for mine, theirs in zip(self.types, other.types, strict=True):
            if not issubclass(mine, theirs):
                return False
            if mine is not theirs:
                break
        return True


def _dispatch_kl(type_p, type_q):
    """The most specific registered function for two types."""
    matches = [(p, q) for p, q in _KL_REGISTRY
               if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*m) for m in matches).types
    right_q, right_p = min(_Match(*reversed(m)) for m in matches).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left_p.__name__}, {right_q.__name__})", RuntimeWarning, stacklevel=3)
    return left


def kl_divergence(p, q):
    r"""The Kullback-Leibler divergence of `q` from `p`.

    .. math::
        KL(p \| q) = \int p(x) \log\frac{p(x)}{q(x)}\, dx

    Example::

        >>> import flambeau as torch
        >>> from flambeau.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    function = _KL_MEMOIZE.get(key)
    if function is None:
        function = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {key[0].__name__} and q type "
            f"{key[1].__name__}")
    return function(p, q)


def _infinite_like(tensor):
    return flambeau.full_like(tensor, inf)


def _x_log_x(tensor):
    return flambeau.special.xlogy(tensor, tensor)


def _batch_trace_XXT(matrix):
    """The trace of :math:`X X^T`, the sum of all squares."""
    return matrix.pow(2).sum((-2, -1))


# ---- general rules --------------------------------------------------------------------------

@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences")
    p_params = [x.detach().requires_grad_() for x in p._natural_params]
    q_params = q._natural_params
    with flambeau.enable_grad():
        normalizer = p._log_normalizer(*p_params)
        gradients = flambeau.autograd.grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - normalizer
    for p_param, q_param, gradient in zip(p_params, q_params, gradients, strict=True):
        result = result - _sum_rightmost((q_param - p_param) * gradient, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- discrete distributions -----------------------------------------------------------------

@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    def term(a, b, sign):
        value = a * (flambeau.nn.functional.softplus(-sign * q.logits)
                     - flambeau.nn.functional.softplus(-sign * p.logits))
        value = flambeau.where(b == 0, inf, value)
        return flambeau.where(a == 0, 0.0, value)

    return term(p.probs, q.probs, 1) + term(1 - p.probs, 1 - q.probs, -1)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    more = (p.total_count > q.total_count).expand(kl.shape)
    return kl.masked_fill(more, inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = flambeau.where((q.probs == 0).expand_as(t), inf, t)
    t = flambeau.where((p.probs == 0).expand_as(t), 0.0, t)
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - flambeau.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _kl_poisson_infinity(p, q):
    return _infinite_like(p.rate)


# ---- a continuous distribution and one of its own kind --------------------------------------

@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    p_sum = p.concentration1 + p.concentration0
    q_sum = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + p_sum.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + q_sum.lgamma()
    t3 = (p.concentration1 - q.concentration1) * flambeau.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * flambeau.digamma(p.concentration0)
    t5 = (q_sum - p_sum) * flambeau.digamma(p_sum)
    return t1 - t2 + t3 + t4 + t5


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # Chyzak and Nielsen, arXiv:1905.10965
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return t1 - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    t1 = p.mean * (p.logits - q.logits)
    t2 = p._cont_bern_log_norm() + flambeau.log1p(-p.probs)
    return t1 + t2 - q._cont_bern_log_norm() - flambeau.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    t1 = total.lgamma() - b.sum(-1).lgamma()
    t2 = (a.lgamma() - b.lgamma()).sum(-1)
    return t1 - t2 + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = flambeau.lgamma(q.concentration) - flambeau.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * flambeau.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio = p.scale / q.scale
    shift_p, shift_q = p.loc / q.scale, q.loc / q.scale
    t1 = -ratio.log() - shift_q + shift_p
    t3 = flambeau.exp(shift_q + (1 + ratio).lgamma() - shift_p)
    return t1 + ratio * euler_constant + t3 - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    # Gil, Alajaji and Linder, Renyi divergence measures for commonly used univariate
    # continuous distributions (2013)
    distance = (p.loc - q.loc).abs()
    ratio = p.scale / q.scale
    return (-ratio.log() + distance / q.scale + ratio * flambeau.exp(-distance / p.scale) - 1)


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    shift = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + shift - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = p.scale / q.scale
    alpha = q.alpha / p.alpha
    result = q.alpha * ratio.log() - alpha.log() + alpha - 1
    return flambeau.where(p.support.lower_bound < q.support.lower_bound, inf, result)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return flambeau.where((q.low > p.low) | (q.high < p.high), inf, result)


# ---- multivariate normal distributions ------------------------------------------------------

@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_events("MultivariateNormals", p, q)
    half = q._half_log_det() - p._half_log_det()
    shape = flambeau.broadcast_shapes(
        q._unbroadcasted_scale_tril.shape, p._unbroadcasted_scale_tril.shape)
    q_factor = q._unbroadcasted_scale_tril.expand(shape)
    p_factor = p._unbroadcasted_scale_tril.expand(shape)
    trace = _batch_trace_XXT(flambeau.linalg.solve_triangular(q_factor, p_factor, upper=False))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events("Low Rank Multivariate Normals", p, q)
    half = _lowrank_logdet(q) - _lowrank_logdet(p)
    distance = _lowrank_distance(q, p.loc)
    # tr(inv(Wq Wq' + Dq) (Wp Wp' + Dp)), by the Woodbury identity
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    a = flambeau.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    root_q = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = ((p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
             + _batch_trace_XXT(p._unbroadcasted_cov_factor * root_q)
             - _batch_trace_XXT(a * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
             - _batch_trace_XXT(a.matmul(p._unbroadcasted_cov_factor)))
    return 0.5 * (half + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events("(Low Rank) Multivariate Normals", p, q)
    half = _lowrank_logdet(q) - 2 * p._half_log_det()
    distance = _lowrank_distance(q, p.loc)
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    a = flambeau.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    root_q = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = (_batch_trace_XXT(p._unbroadcasted_scale_tril * root_q)
             - _batch_trace_XXT(a.matmul(p._unbroadcasted_scale_tril)))
    return 0.5 * (half + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_events("(Low Rank) Multivariate Normals", p, q)
    half = 2 * q._half_log_det() - _lowrank_logdet(p)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    shape = flambeau.broadcast_shapes(
        q._unbroadcasted_scale_tril.shape[:-2], p._unbroadcasted_cov_factor.shape[:-2])
    n = p.event_shape[0]
    q_factor = q._unbroadcasted_scale_tril.expand(shape + (n, n))
    w = p._unbroadcasted_cov_factor.expand(shape + (n, p.cov_factor.size(-1)))
    root = flambeau.diag_embed(p._unbroadcasted_cov_diag.sqrt()).expand(shape + (n, n))
    trace = (_batch_trace_XXT(flambeau.linalg.solve_triangular(q_factor, w, upper=False))
             + _batch_trace_XXT(flambeau.linalg.solve_triangular(q_factor, root, upper=False)))
    return 0.5 * (half + trace + distance - n)


def _check_events(kinds, p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kinds} with different event shapes cannot "
                         "be computed")


def _lowrank_logdet(d):
    return _batch_lowrank_logdet(
        d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag, d._capacitance_tril)


def _lowrank_distance(q, loc):
    return _batch_lowrank_mahalanobis(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag,
                                      q.loc - loc, q._capacitance_tril)


# ---- p has mass where q has none ------------------------------------------------------------

@register_kl(Beta, Pareto)
def _kl_beta_infinity(p, q):
    return _infinite_like(p.concentration1)


@register_kl(ContinuousBernoulli, Pareto)
def _kl_continuous_bernoulli_infinity(p, q):
    return _infinite_like(p.probs)


@register_kl(Exponential, Beta)
@register_kl(Exponential, ContinuousBernoulli)
@register_kl(Exponential, Pareto)
@register_kl(Exponential, Uniform)
def _kl_exponential_infinity(p, q):
    return _infinite_like(p.rate)


@register_kl(Gamma, Beta)
@register_kl(Gamma, ContinuousBernoulli)
@register_kl(Gamma, Pareto)
@register_kl(Gamma, Uniform)
def _kl_gamma_infinity(p, q):
    return _infinite_like(p.concentration)


@register_kl(Gumbel, Beta)
@register_kl(Gumbel, ContinuousBernoulli)
@register_kl(Gumbel, Exponential)
@register_kl(Gumbel, Gamma)
@register_kl(Gumbel, Pareto)
@register_kl(Gumbel, Uniform)
@register_kl(Laplace, Beta)
@register_kl(Laplace, ContinuousBernoulli)
@register_kl(Laplace, Exponential)
@register_kl(Laplace, Gamma)
@register_kl(Laplace, Pareto)
@register_kl(Laplace, Uniform)
@register_kl(Normal, Beta)
@register_kl(Normal, ContinuousBernoulli)
@register_kl(Normal, Exponential)
@register_kl(Normal, Gamma)
@register_kl(Normal, Pareto)
@register_kl(Normal, Uniform)
def _kl_loc_infinity(p, q):
    return _infinite_like(p.loc)


@register_kl(Pareto, Beta)
@register_kl(Pareto, ContinuousBernoulli)
@register_kl(Pareto, Uniform)
def _kl_pareto_infinity(p, q):
    return _infinite_like(p.scale)


# ---- two different continuous distributions -------------------------------------------------

@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return (-p.entropy() - p.mean * q.logits - flambeau.log1p(-q.probs)
            - q._cont_bern_log_norm())


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Uniform, Exponential)
def _kl_to_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + t2 - (q.concentration - 1) * log_mean + q.rate * p.mean


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Uniform, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Laplace, Normal)
def _kl_to_normal(p, q):
    variance = q.scale.pow(2)
    second = p.variance + (p.mean - q.loc).pow(2)   # the mean square distance from q.loc
    return -p.entropy() + 0.5 * (2 * math.pi * variance).log() + 0.5 * second / variance


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    return flambeau.where(p.alpha <= 2, inf, _kl_to_normal(p, q))


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return flambeau.where((q.low > 0) | (q.high < 1), inf, result)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return flambeau.where((q.low > 0) | (q.high < 1), inf, result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return (-q.concentration * flambeau.log(ratio) + ratio + q.concentration.lgamma()
            + q.concentration * euler_constant - (1 + euler_constant))


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    scaled = p.rate * q.scale
    shift = q.loc / q.scale
    t2 = flambeau.exp(shift) * scaled / (scaled + 1)
    return scaled.log() - 1 - shift + t2 + scaled.reciprocal()


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    scaled = p.rate * q.scale
    shift = q.loc / q.scale
    t1 = ((p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma()
          - p.concentration)
    t2 = scaled.log() + p.concentration / scaled
    t3 = flambeau.exp(shift) * (1 + scaled.reciprocal()).pow(-p.concentration) - shift
    return t1 + t2 + t3


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    mean_ratio = p.loc / q.scale
    shift = q.loc / q.scale
    t2 = flambeau.exp(-mean_ratio + 0.5 * (p.scale / q.scale).pow(2) + shift)
    return (mean_ratio - shift + t2 - 0.5 * (1 + math.log(2 * math.pi))
            - flambeau.log(p.scale / q.scale))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    distance = (p.loc - q.loc) / p.scale
    t1 = flambeau.log(p.scale / q.scale)
    t2 = math.sqrt(2 / math.pi) * flambeau.exp(-0.5 * distance.pow(2))
    t3 = distance * flambeau.erf(math.sqrt(0.5) * distance)
    return -t1 + (p.scale * (t2 + t3) / q.scale) - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    scaled = p.scale * q.rate
    result = ((p.alpha / scaled).log() - p.alpha.reciprocal()
              + p.alpha * scaled / (p.alpha - 1) - 1)
    return flambeau.where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    log_mean = p.scale.log() + p.alpha.reciprocal()
    t1 = p.alpha.log() - log_mean
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    result = (t1 + t2 - 1 + (1 - q.concentration) * log_mean
              + q.rate * p.alpha * p.scale / (p.alpha - 1))
    return flambeau.where(p.alpha <= 1, inf, result)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    width = p.high - p.low
    t1 = flambeau.log(width)
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = (q.concentration1.lgamma() + q.concentration0.lgamma()
          - (q.concentration1 + q.concentration0).lgamma())
    result = t3 + t4 - t1 - t2
    return flambeau.where((p.high > 1) | (p.low < 0), inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = (-p.entropy() - p.mean * q.logits - flambeau.log1p(-q.probs)
              - q._cont_bern_log_norm())
    return flambeau.where((p.high > 1) | (p.low < 0), inf, result)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    width = p.high - p.low
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = -width.log() + t2 + t3 + q.rate * (p.high + p.low) / 2
    return flambeau.where(p.low < 0, inf, result)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    width = (p.high - p.low) / q.scale
    return -flambeau.log(width) + 0.5 * (low + high) - (
        flambeau.exp(-high) - flambeau.exp(-low)) / width


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    width = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * width).log()
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = t2 * (q.alpha + 1) - t1
    return flambeau.where(p.low < q.support.lower_bound, inf, result)
