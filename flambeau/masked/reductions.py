"""Reductions and normalisations of the elements that a mask selects.

In a mask True means that an element counts. It broadcasts to the input; without one, all elements
count. Where none does, a reduction gives the element that is neutral for it, or nan if there is
no such.
"""
from __future__ import annotations

import math
from functools import partial
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.lazy.modules import stand_in
from flambeau.schema.errors import type_name

_inf = math.inf


# ---- arguments ----------------------------------------------------------------------------------

_ANY = "strided, sparse_coo or sparse_csr"


def _parts(input: Any, mask: Any, name: str = "", takes: str = "strided") -> tuple[Tensor, Any]:
    """The data and the mask of an input, which may be a `MaskedTensor`; a function of that `name`
    takes such layouts only."""
    if hasattr(type(input), "get_mask"):
        own = input.get_mask()
        mask = own if mask is None else own & _broadcast(mask, own)
        input = input.get_data()
    if not isinstance(input, Tensor):
        wanted = "layout" if name in ("sum", "prod") else "dtype"      # which is asked for first
        raise AttributeError(f"'{type_name(input)}' object has no attribute '{wanted}'")
    if name and str(input.layout)[6:] not in takes:
        raise _wrong_layout(name, takes, input.layout, mask)
    if input.layout is not flambeau.strided:
        if mask is None and name not in ("", "sum"):
            raise ValueError(f"masked {name} expects explicit mask for {str(input.layout)[6:]} "
                             "tensor input")
        raise NotImplementedError(f"masked operations on tensors with layout {input.layout}")
    return input, None if mask is None else _broadcast(mask, input)


def _wrong_layout(name: str, takes: str, layout: Any, mask: Any) -> ValueError:
    if str(layout) == "torch._mkldnn" and mask is not None and name not in ("mean", "std/var"):
        return ValueError("_input_mask expects strided or sparse COO or sparse CSR tensor but got "
                          f"{layout}")
    return ValueError(f"masked {name} expects {takes} tensor (got {layout} tensor)")


def _broadcast(mask: Tensor, input: Tensor) -> Tensor:
    if len(mask.shape) > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher "
                         "than of the input)")
    if not isinstance(mask, Tensor):
        raise AttributeError(f"'{type_name(mask)}' object has no attribute 'layout'")
    return (mask if mask.dtype is flambeau.bool else mask != 0).expand(input.shape)


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front; None and () are all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        room = max(ndim, 1)
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if d >= room or d < -room:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-room}, "
                             f"{room - 1}], but got {d})")
        dims.append(d % room)
    return tuple(sorted(dims))


def _least(name: str, dtype: Any) -> Any:
    """The identity of a maximum, which messages call by the `name` of the reduction."""
    return -_inf if dtype.is_floating_point else _limits(name, dtype).min


def _greatest(name: str, dtype: Any) -> Any:
    return _inf if dtype.is_floating_point else _limits(name, dtype).max


def _limits(name: str, dtype: Any) -> Any:
    _refuse_identity(name, dtype)
    return flambeau.iinfo(dtype)


def _refuse_identity(name: str, dtype: Any) -> None:
    """PyTorch knows none of booleans and of wide unsigned integers."""
    if dtype in (flambeau.bool, flambeau.uint16, flambeau.uint32, flambeau.uint64):
        raise NotImplementedError(f"identity of {name} on {dtype} input")


def _filled(input: Tensor, mask: Tensor | None, neutral: Any) -> Tensor:
    if mask is None:
        return input
    if callable(neutral):
        neutral = neutral(input.dtype)
    return flambeau.where(mask, input, flambeau.tensor(neutral, dtype=input.dtype))


_SUMMED = (flambeau.bool, flambeau.uint8, flambeau.int8, flambeau.int16, flambeau.int32,
           flambeau.int64)


def _summed_dtype(dtype: Any) -> Any:
    """Sums of integers are int64, but for those of wide unsigned ones."""
    return flambeau.int64 if dtype in _SUMMED else dtype


def _float_dtype(dtype: Any) -> Any:
    return dtype if dtype.is_floating_point or dtype.is_complex else flambeau.float32


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    ones = flambeau.ones(input.shape, dtype=flambeau.int64)
    return (ones if mask is None else mask).sum(dims, keepdim=keepdim, dtype=flambeau.int64)


# ---- reductions ---------------------------------------------------------------------------------

def sum(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
    """The sum of the elements that the mask selects.

    >>> x, mask = flambeau.tensor([[1, 2], [3, 4]]), flambeau.tensor([[True, True], [True, False]])
    >>> flambeau.masked.sum(x, 1, mask=mask)
    tensor([3, 3])
    """
    input, mask = _parts(input, mask, "sum", _ANY)
    dtype = _summed_dtype(input.dtype) if dtype is None else dtype
    return _filled(input, mask, 0).sum(_dims(dim, input.ndim), keepdim=bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The product of the elements that the mask selects."""
    input, mask = _parts(input, mask, "prod", _ANY)
    if dtype is None:
        own = input.dtype
        dtype = own if own.is_floating_point or own.is_complex else flambeau.int64
    result = _filled(input, mask, 1).to(dtype=dtype)
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, keepdim=bool(keepdim))
    return result


def _extreme(name: str, neutral: Any) -> Any:
    def reduce(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
               mask: Tensor | None = None) -> Tensor:
        input, mask = _parts(input, mask, name, _ANY)
        filled = _filled(input, mask, partial(neutral, name))
        result = getattr(filled, name)(_dims(dim, input.ndim), keepdim=bool(keepdim))
        return result.to(dtype=dtype or input.dtype)
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"The {name[1:]}imum of the elements that the mask selects."
    return reduce


def _extreme_index(name: str, neutral: Any) -> Any:
    def reduce(input: Any, dim: int | None = None, *, keepdim: bool | None = False,
               dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        input, mask = _parts(input, mask, name)
        filled = _filled(input, mask, partial(neutral, name))
        return getattr(flambeau, name)(filled, dim, bool(keepdim)).to(dtype=dtype or input.dtype)
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = (f"Where the {name[3:]}imum of the elements that the mask selects is: a "
                      "number of the input's dtype.")
    return reduce


amax, amin = _extreme("amax", _least), _extreme("amin", _greatest)
argmax, argmin = _extreme_index("argmax", _least), _extreme_index("argmin", _greatest)


def mean(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
         mask: Tensor | None = None) -> Tensor:
    """The mean of the elements that the mask selects; nan of none.

    >>> flambeau.masked.mean(flambeau.tensor([1.0, 2.0, 9.0]), mask=flambeau.tensor([1, 1, 0]) > 0)
    tensor(1.5000)
    """
    input, mask = _parts(input, mask, "mean", "strided or sparse_csr")
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError("mean(): Could not infer output dtype. Input dtype must be either a "
                         f"floating point or complex dtype. Got: {dtype}")
    dims = _dims(dim, input.ndim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return flambeau.divide(total, _count(input, dims, bool(keepdim), mask))


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None,
           mask: Tensor | None = None) -> Tensor:
    """The median of the elements that the mask selects, of two the smaller; nan of none, which
    integers have not."""
    input, mask = _parts(input, mask, "median")
    at = _dims(dim, input.ndim)[0]
    values = input if input.is_floating_point() else input.to(flambeau.float32)
    result = flambeau.nanmedian(_filled(values, mask, math.nan), at, keepdim).values
    if values is input:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating "
                         "point")
    return result.to(dtype=input.dtype if dtype is None else dtype)


def norm(input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False,
         dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """(Σ |x|^ord)^(1/ord) of the elements that the mask selects."""
    input, mask = _parts(input, mask, "norm")
    filled = _filled(input, mask, _inf if ord == -_inf else 0)
    return flambeau.linalg.vector_norm(filled, ord, _dims(dim, input.ndim), bool(keepdim),
                                       dtype=dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """log Σ exp(x) of the elements that the mask selects."""
    input, mask = _parts(input, mask, "logsumexp")
    if mask is not None:
        _refuse_identity("logsumexp", input.dtype)
    values = input.to(dtype=_float_dtype(input.dtype) if dtype is None else dtype)
    result = flambeau.logsumexp(_filled(values, mask, -_inf), _dims(dim, input.ndim),
                                keepdim=keepdim)
    return result.to(dtype=dtype or input.dtype)


def _spread(input: Any, dim: Any, unbiased: bool | None, correction: Any, keepdim: bool,
            dtype: Any, mask: Any, root: bool) -> Tensor:
    input, mask = _parts(input, mask, "std/var")
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    correction = float(correction)
    dtype = _float_dtype(input.dtype) if dtype is None else dtype
    dims = _dims(dim, input.ndim)
    if input.dtype is flambeau.bool:
        flambeau.subtract(input, 0.0)           # refuses
    values = input.to(dtype)
    count = _count(input, dims, True, mask)
    centre = flambeau.divide(_filled(values, mask, 0).sum(dims, keepdim=True), count)
    apart = values - centre
    squares = (apart * apart.conj()).real if dtype.is_complex else apart * apart
    total = _filled(squares, mask, 0).sum(dims, keepdim=keepdim)
    left = (count if keepdim else count.reshape(total.shape)) - correction
    result = flambeau.divide(total, left.clamp(min=0)).to(total.dtype)
    return (flambeau.sqrt(result) if root else result).to(dtype)


def var(input: Any, dim: Any = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool | None = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
    """The variance of the elements that the mask selects: divided by their number less
    `correction` (1)."""
    return _spread(input, dim, unbiased, correction, bool(keepdim), dtype, mask, False)


def std(input: Any, dim: Any = None, unbiased: bool | None = None, *,
        correction: int | None = None, keepdim: bool | None = False, dtype: Any = None,
        mask: Tensor | None = None) -> Tensor:
    """The square root of `var`."""
    return _spread(input, dim, unbiased, correction, bool(keepdim), dtype, mask, True)


# ---- along a dimension --------------------------------------------------------------------------

def _along(name: str, what: str, neutral: Any, function: Any) -> Any:
    def apply(input: Any, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        input, mask = _parts(input, mask, name)
        at = _dims(dim, input.ndim)[0]
        filled = _filled(input, mask, neutral)
        return function(filled, at, dtype=input.dtype if dtype is None else dtype)
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{what} along `dim`, of the elements that the mask selects."
    return apply


cumsum = _along("cumsum", "Running sums", 0, flambeau.cumsum)
cumprod = _along("cumprod", "Running products", 1, flambeau.cumprod)
softmax = _along("softmax", "exp(x) / Σ exp(x)", partial(_least, "amax"), flambeau.softmax)
log_softmax = _along("log_softmax", "x - log Σ exp(x)", partial(_least, "amax"),
                     flambeau.log_softmax)
softmin = _along("softmin", "exp(-x) / Σ exp(-x)", partial(_greatest, "amin"),
                 lambda x, dim, dtype: flambeau.nn.functional.softmin(x, dim, dtype=dtype))


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None,
              mask: Tensor | None = None) -> Tensor:
    """x / max(norm(x, ord), eps) along `dim`, of the elements that the mask selects."""
    input, mask = _parts(input, mask, "normalize")
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return flambeau.divide(_filled(input, mask, 0),
                           flambeau.maximum(length, length.new_full((), eps)))


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Tensor | None = None,
              other_mask: Tensor | None = None) -> Tensor:
    """log(exp(x) + exp(y)); an element that its mask leaves out counts as log 0."""
    terms = []
    if isinstance(input, Tensor) and not (
            input.layout is other.layout is flambeau.strided):
        raise ValueError(f"masked logaddexp expects strided tensors (got {input.layout} tensor for "
                         f"input, {other.layout} for other)")
    for given, mask in ((input, input_mask), (other, other_mask)):
        term, mask = _parts(given, mask)
        term = term if dtype is None else term.to(dtype=dtype)
        terms.append(_filled(term, mask, partial(_least, "logaddexp")))
    return flambeau.logaddexp(*terms)


__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
           "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std",
           "sum", "var"]
stand_in("masked._ops", amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp,
         logsumexp, mean, median, norm, normalize, prod, softmax, softmin, std, sum, var)
