"""Which function computes the divergence of two types of distributions."""
import warnings
from functools import total_ordering
from typing import Any

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

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


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
