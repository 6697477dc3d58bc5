"""Divergences of distributions of two kinds; infinite where one has mass and the other none."""
import math

import flambeau
from flambeau import inf
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.kl.registry import register_kl
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.normal import Normal
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import euler_constant


def _infinite_like(tensor):
    return flambeau.full_like(tensor, inf)


def _x_log_x(tensor):
    return flambeau.special.xlogy(tensor, tensor)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _kl_poisson_infinity(p, q):
    return _infinite_like(p.rate)


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
