"""Probability distributions: drawing samples, densities, entropies and divergences.

`distribution` holds what all share; each distribution stands in a module of its name, with its
formula; `constraints`, `transforms` and `constraint_registry` tell which values are valid and
map unconstrained numbers to them; `kl` holds the Kullback-Leibler divergences.
"""

from flambeau.distributions import constraints, transforms, utils
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.constraint_registry import biject_to, transform_to
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.fishersnedecor import FisherSnedecor
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.generalized_pareto import GeneralizedPareto
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.half_cauchy import HalfCauchy
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.independent import Independent
from flambeau.distributions.inverse_gamma import InverseGamma
from flambeau.distributions.kumaraswamy import Kumaraswamy
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.lkj_cholesky import LKJCholesky
from flambeau.distributions.log_normal import LogNormal
from flambeau.distributions.logistic_normal import LogisticNormal
from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from flambeau.distributions.mixture_same_family import MixtureSameFamily
from flambeau.distributions.multinomial import Multinomial
from flambeau.distributions.multivariate_normal import MultivariateNormal
from flambeau.distributions.negative_binomial import NegativeBinomial
from flambeau.distributions.normal import Normal
from flambeau.distributions.one_hot_categorical import *
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.relaxed_bernoulli import RelaxedBernoulli
from flambeau.distributions.relaxed_categorical import RelaxedOneHotCategorical
from flambeau.distributions.studentT import StudentT
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import *
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.von_mises import VonMises
from flambeau.distributions.weibull import Weibull
from flambeau.distributions.wishart import Wishart

from flambeau.distributions.kl import kl_divergence, register_kl  # isort: skip

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli",
           "Dirichlet", "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor",
           "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
           "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
           "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
           "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
           "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises",
           "Weibull", "Wishart", "biject_to", "kl_divergence", "register_kl", "transform_to",
           *transforms.__all__]
