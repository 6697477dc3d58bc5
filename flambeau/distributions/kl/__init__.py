"""Kullback-Leibler divergences between pairs of distributions."""

from flambeau._support.own_methods import adopt
from flambeau.distributions.kl import different_families, same_family
from flambeau.distributions.kl.registry import (
    _KL_MEMOIZE,
    _KL_REGISTRY,
    _dispatch_kl,
    kl_divergence,
    register_kl,
)

__all__ = ["kl_divergence", "register_kl"]

adopt(globals(), "distributions.kl.")
