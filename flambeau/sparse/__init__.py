"""`torch.sparse`: products, sums and softmax of sparse tensors, and checks of their indices.

The layouts are coordinates (`sparse_coo`), compressed rows and columns (`sparse_csr`, `sparse_csc`)
and the same of blocks (`sparse_bsr`, `sparse_bsc`). `to_sparse` and `to_dense` convert;
`flambeau.sparse_coo_tensor` and its kin make them from parts. Gradients of sparse tensors are
sparse where an op says so.

>>> import flambeau
>>> a = flambeau.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
>>> flambeau.sparse.mm(a, flambeau.ones(2, 1))
tensor([[2.],
        [3.]])
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau.core.modes import grad_enabled
from flambeau.dispatch.members import member
from flambeau.ops.sparse import math as sparse_math
from flambeau.ops.sparse import places as sparse_places
from flambeau.ops.sparse import products as sparse_products
from flambeau.ops.sparse import reduce as sparse_reduce
from flambeau.ops.sparse import tensors as _sparse
from flambeau.ops.sparse.calls import replace as _replace
from flambeau.ops.sparse.calls import rules as _rules
from flambeau.ops.sparse.compressed import CSR as _CSR
from flambeau.ops.sparse.compressed import TITLES as _TITLES
from flambeau.ops.sparse.diagonals import spdiags


def _product(a: Tensor, b: Tensor, reduce: str | None) -> Tensor:
    return _rules["sparse.mm"](a, b, reduce)


mm = member("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor",
            "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor", body=_product,
            method=False, doc="""The product of two matrices, either of them sparse.

    Two sparse matrices give a sparse one. A sparse factor gets a gradient at its own places only.
    With `reduce` ("sum", "mean", "amax", "amin") the terms of an element are combined so; the first
    matrix is then in csr.

    >>> import flambeau
    >>> a = flambeau.eye(2).to_sparse()
    >>> flambeau.sparse.mm(a, flambeau.ones(2, 1))
    tensor([[1.],
            [1.]])
    """)


@member("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor", method=False)
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta · mat + alpha · mat1 @ mat2, with gradients of a sparse `mat1` at its places only."""
    return _rules["sparse.addmm"](mat, mat1, mat2, beta, alpha)


@member("sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
        "Scalar alpha=1, Tensor? out=None) -> Tensor", method=False)
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any,
                  out: Tensor | None) -> Tensor:
    """alpha · (mat1 @ mat2) where the csr tensor `input` has entries, plus beta · input.

    >>> import flambeau
    >>> places = flambeau.eye(2).to_sparse_csr()
    >>> flambeau.sparse.sampled_addmm(places, flambeau.ones(2, 3), flambeau.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if out is not None:
        if grad_enabled() and any(
                each.requires_grad for each in (input, mat1, mat2, out)):
            raise RuntimeError("sparse_sampled_addmm(): functions with out=... arguments don't "
                               "support automatic differentiation, but one of the arguments "
                               "requires grad.")
        if out.layout is not _CSR:
            raise RuntimeError("sampled_addmm: Expected result to have sparse csr layout, but got "
                               f"{_TITLES[out.layout]}")
    result = _rules["sparse.sampled_addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return result if out is None else _replace(out, result)


_sparse_sum = member(
    "_sparse_sum(Tensor self) -> Tensor", "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> "
    "Tensor", "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor", method=False,
    body=lambda input, dtype, dim: _rules["sparse.sum"](input, dim, dtype))


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor, over all or some dimensions; sparse if any sparse one is left.

    >>> import flambeau
    >>> flambeau.sparse.sum(flambeau.eye(2).to_sparse())
    tensor(2.)
    """
    dims = () if dim is None else (dim,)
    return _sparse_sum(input, *dims) if dtype is None else _sparse_sum(input, *dims, dtype=dtype)


def _along(name: str, doc: str) -> Any:
    def body(input: Tensor, dim: int, dtype: Any, half_to_float: bool | None) -> Tensor:
        return _rules[f"sparse.{name}"](input, dim, dtype=dtype)
    return member(f"_sparse_{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                  f"_sparse_{name}(Tensor self, int dim, bool half_to_float) -> Tensor", body=body,
                  method=False, doc=doc)


softmax = _along("softmax", "Softmax along `dim` over the entries there are: what is absent counts "
                            "as minus infinity.")
log_softmax = _along("log_softmax", "The logarithm of `softmax`, computed stably.")


@member("_spsolve(Tensor A, Tensor B, *, bool left=True) -> Tensor", method=False)
def spsolve(input: Tensor, other: Tensor, left: bool) -> Tensor:
    """x with input @ x = other, for a square csr matrix and a vector."""
    from flambeau.ops.sparse.diagonals import solve
    if not left:
        raise NotImplementedError("spsolve with left=False")
    return solve(input, other)


class check_sparse_tensor_invariants:
    """Switches the checks of indices where sparse tensors are made: `enable()`, `disable()`,
    `is_enabled()`; also a context manager and a decorator.

    >>> import flambeau
    >>> with flambeau.sparse.check_sparse_tensor_invariants():
    ...     flambeau.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    @staticmethod
    def is_enabled() -> bool:
        """Are indices checked?"""
        return _sparse.Invariants.enabled

    @staticmethod
    def enable() -> None:
        """Check the indices of all sparse tensors that are made."""
        _sparse.Invariants.set(True)

    @staticmethod
    def disable() -> None:
        """Check indices only where `check_invariants=True` says so."""
        _sparse.Invariants.set(False)

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a "
                               "different context manager instance for context nesting.")
        self.saved_state = self.is_enabled()
        _sparse.Invariants.set(self.state)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        _sparse.Invariants.enabled, self.saved_state = self.saved_state, None

    def __call__(self, mth: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(mth)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)
        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """`gradcheck` (or a wrapper of it) for functions with sparse inputs and outputs.

    The function is checked as one of the values of its sparse inputs; sparse outputs are made
    dense. With `masked=False` the inputs are filled up with explicit zeros first, so that the
    gradient of every element is checked.
    """
    from flambeau.sparse._gradcheck import wrapped
    return wrapped(gradcheck)


def __getattr__(name: str) -> Any:
    if name in ("SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
                "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured"):
        from flambeau.sparse import semi_structured
        return getattr(semi_structured, name)
    if name.endswith("Tensor"):
        from flambeau.sparse._typed import TYPES
        if name in TYPES:
            return TYPES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


DimOrDims = int | tuple[int, ...] | list[int] | None

__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
           "SparseSemiStructuredTensorCUTLASS", "addmm", "as_sparse_gradcheck",
           "check_sparse_tensor_invariants", "log_softmax", "mm", "softmax", "sum",
           "to_sparse_semi_structured"]
