"""What PyTorch's functions that are written in Python hand on to its functions in C++.

Those check the types of their arguments, and a wrong one is reported by their name and position:

>>> import flambeau
>>> flambeau.unique(flambeau.ones(2), return_counts=1)
Traceback (most recent call last):
TypeError: _unique2(): argument 'return_counts' must be bool, not int

A rule takes what the function takes and says which call that leads to; where it raises itself, it
has nothing to say. Rules look at types, at `None` and at flags, for a call is checked once for the
types of its arguments.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core import dtypes, type_info

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class _Inner:
    """Makes `c.name(...)` a description of that call, `c[name](...)` too."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        return lambda *args, **kwargs: (name, args, kwargs)

    __getitem__ = __getattr__


c = _Inner()
REDUCTION = 0                       # what stands for a reduction, once it has become a number


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _normed(input: Any, p: Any = "fro", dim: Any = None, keepdim: Any = False, out: Any = None,
            dtype: Any = None) -> Call:
    dims = [dim] if type(dim) is int else dim
    more = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    if p == "fro" and (dim is None or type(dim) is int or len(dim) <= 2):
        return c.linalg_vector_norm(input, 2, dims, keepdim, **more)
    if isinstance(p, str):
        return c.linalg_matrix_norm(input, p, [*range(input.ndim)] if dims is None else dims,
                                    keepdim, **more)
    return c.linalg_vector_norm(input, 2.0 if p is None else p, dims, keepdim, **more)


def _split(tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> Call:
    one = not isinstance(split_size_or_sections, (tuple, list)) and (
        not hasattr(split_size_or_sections, "numel") or split_size_or_sections.numel() == 1)
    return c["split" if one else "split_with_sizes"](
        tensor, int(split_size_or_sections) if one else split_size_or_sections, dim)


def _window(single: bool) -> Any:
    """Of a window; is one of a `single` value made apart?"""
    def rule(M: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: Any = False, **own: Any) -> Call | None:
        more = {"dtype": dtypes.float32, "layout": type_info.strided, "device": device,
                "requires_grad": requires_grad}
        if M < 0:
            return None
        if M == 0 or (M == 1 and single):
            return c["ones" if M else "empty"]((int(M),), **more)
        return c.linspace(start=0.0, end=1.0, steps=M, **more)
    return rule


RULES: dict[str, Any] = {
    # of `torch`
    "norm": _normed,
    "split": _split,
    "unique": lambda input, sorted=True, return_inverse=False, return_counts=False, dim=None:
        c._unique2(input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
        if dim is None else
        c.unique_dim(input, dim, sorted=sorted, return_inverse=return_inverse,
                     return_counts=return_counts),
    "unique_consecutive": lambda input, return_inverse=False, return_counts=False, dim=None:
        c.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts,
                             dim=dim),
    **{f"signal.windows.{name}": _window(name not in ("cosine", "exponential", "gaussian"))
       for name in ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
                    "general_hamming", "hamming", "hann", "kaiser", "nuttall")},
}
