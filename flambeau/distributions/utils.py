"""Helpers of the distributions."""

from functools import update_wrapper
from numbers import Number

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060


def broadcast_all(*values):
    """Tensors of one shape from tensors and numbers, which take the first tensor's dtype."""
    for value in values:
        if not isinstance(value, (Tensor, Number)) or isinstance(value, complex):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects "
                "implementing __torch_function__.")
    tensors = [value for value in values if isinstance(value, Tensor)]
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    else:
        options = {"dtype": flambeau.get_default_dtype()}
    return flambeau.broadcast_tensors(*(
        value if isinstance(value, Tensor) else flambeau.tensor(value, **options)
        for value in values))


def _standard_normal(shape, dtype, device):
    return flambeau.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dims):
    """Sum the last `dims` dimensions, or none."""
    if dims == 0:
        return value
    return value.reshape(value.shape[:-dims] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds (`is_binary`) or of unnormalised log-probabilities."""
    return flambeau.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities moved off 0 and 1, by the dtype's epsilon."""
    eps = flambeau.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log-odds (`is_binary`) or log-probabilities."""
    probs = clamp_probs(probs)
    logits = flambeau.log(probs)
    return logits - flambeau.log1p(-probs) if is_binary else logits


class lazy_property:
    """A property that is computed when it is first asked for, and then kept.

    Example::

        >>> from flambeau.distributions.utils import lazy_property
        >>> class Answer:
        ...     @lazy_property
        ...     def value(self):
        ...         print("thinking")
        ...         return 42
        >>> a = Answer()
        >>> a.value + a.value
        thinking
        84
    """

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with flambeau.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class shows for a lazy property: a property, for documentation tools."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The entries of the lower triangle, row by row, up to diagonal `diag`.

    Example::

        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(torch.arange(4).reshape(2, 2))
        tensor([0, 2, 3])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = flambeau.arange(n, device=mat.device)
    return mat[..., rows < rows.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec, diag=0):
    """The matrix that :func:`tril_matrix_to_vec` took apart, with zeros above."""
    length = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5)
    n = n / 2
    if round(n) - n > flambeau.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {length} which cannot be expressed as "
                         "the lower triangular part of a square D x D matrix.")
    n = round(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    rows = flambeau.arange(n, device=vec.device)
    matrix[..., rows < rows.view(-1, 1) + (diag + 1)] = vec
    return matrix
