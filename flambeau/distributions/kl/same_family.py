"""Divergences of two distributions of one kind, and the rules for whole families."""
import flambeau
from flambeau import inf
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.independent import Independent
from flambeau.distributions.kl.registry import kl_divergence, register_kl
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


def _batch_trace_XXT(matrix):
    """The trace of :math:`X X^T`, the sum of all squares."""
    return matrix.pow(2).sum((-2, -1))


# ---- general rules --------------------------------------------------------------------------

@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            + " " * 28 + "be computed using Bregman divergences")
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
