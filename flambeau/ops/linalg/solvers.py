"""Linear equations, over any leading dimensions.

The rules are those of Giles, An extended collection of matrix derivative results for forward and
reverse mode automatic differentiation, 2008.
"""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau._support.settings import warn_once
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.linalg import lapack
from flambeau.kernels.refused import refuse
from flambeau.ops.linalg.support import (
    add_terms,
    adjoint,
    check_fit,
    check_floating,
    check_is_floating,
    check_matrix,
    check_same_type,
    check_solve,
    check_square,
    conj,
    lies_by_columns,
    matmul,
    raise_failure,
    transpose,
    with_gradient_by_columns,
)
from flambeau.ops.out_types import CASTABLE_RESULT, OUT_TYPE
from flambeau.ops.view.diagonal import tril, triu
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_leading, movedim, squeeze, unsqueeze

# ---- A X = B ------------------------------------------------------------------------------------


def holds_vectors(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Is the right side of this shape a vector for each matrix?"""
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


def _check_solve(A: Tensor, B: Tensor, left: bool, check_errors: bool) -> Any:
    name = "linalg.solve"
    check_is_floating(A, name)
    check_same_type(A, B, name)
    check_square(A, name)
    if not B._array.ndim:
        check_matrix(B, name, "B")
    a, b = A._array.shape, B._array.shape
    vector = holds_vectors(a, b)
    if vector and not left:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported "
                           f"for left=False. In this case {name} is equivalent to B / "
                           "A.squeeze(-1)")
    check_fit(A, unsqueeze(B, -1) if vector else B, left, name)
    broadcast_shapes(a[:-2], b[:-1] if vector else b[:-2])
    check_floating(A, name, "lu_cpu")
    return A, B, left, check_errors


def _as_columns(A: Tensor, result: Tensor, grad: Tensor) -> tuple[bool, Tensor, Tensor]:
    vector = result._array.ndim == 1 or result._array.ndim < A._array.ndim
    return vector, unsqueeze(result, -1) if vector else result, \
        unsqueeze(grad, -1) if vector else grad


def _solve_vjp(grad: Any, needs: Any, A: Tensor, result: Tensor, left: bool) -> Any:
    if grad[0] is None:
        return [None, None]
    vector, X, g = _as_columns(A, result, grad[0])
    gB = solve_matrices(adjoint(A), g, left)
    gA = None
    if needs[0]:
        gA = -matmul(gB, adjoint(X)) if left else -matmul(adjoint(X), gB)
    return [gA, squeeze(gB, -1) if vector else gB]


def _solve_jvp(A: Tensor, B: Tensor, A_t: Tensor, B_t: Tensor, result: Tensor, left: bool
               ) -> Any:
    vector, X, tangent = _as_columns(A, result, B_t)
    found = solve_matrices(A, tangent - (matmul(A_t, X) if left else matmul(X, A_t)), left)
    return [squeeze(found, -1) if vector else found, None]


def in_front(size: int, dims: Any, tensors: Any) -> list[Tensor]:
    """Of a batch: the tensors with its dimension, or one of extent 1, in front of equally many."""
    rank = max(t._array.ndim - (d is not None) for t, d in zip(tensors, dims))
    whole = []
    for t, d in zip(tensors, dims):
        t = unsqueeze(t, 0) if d is None else movedim(t, d, 0)
        shape = t._array.shape
        whole.append(reshape(t, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:])))
    return whole


def _drop_dim(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    return shape if dim is None else shape[:dim] + shape[dim + 1:]


def _solve_batched(size: int, dims: Any, A: Tensor, B: Tensor, left: bool, check_errors: bool
                   ) -> Any:
    vector = holds_vectors(_drop_dim(A._array.shape, dims[0]), _drop_dim(B._array.shape, dims[1]))
    if vector:                              # a new last dimension moves none
        B = unsqueeze(B, -1)
    A, B = in_front(size, dims, (A, B))
    X, info = solve_ex(A, B, left=left, check_errors=check_errors)
    own = dims[0] is not None               # failures are those of A alone
    return [squeeze(X, -1) if vector else X, info if own else squeeze(info, 0)], [
        0, 0 if own else None]


solve_ex = op(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
    "(Tensor result, Tensor info)", kernel=lapack.solve_ex, kernel_checks=True,
    canonical=_check_solve, vjp=_solve_vjp, jvp=_solve_jvp, batch=_solve_batched,
    differentiable=(True, False), out_type=OUT_TYPE, out_reported_as="_linalg_solve_ex",
    doc="`solve`, and for each matrix 0 or the number of its first zero pivot.")


def solve_matrices(A: Tensor, B: Tensor, left: bool = True) -> Tensor:
    """A⁻¹ B of matrices, or B A⁻¹."""
    return solve_ex(A, B, left=left)[0]


@op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", out_type=OUT_TYPE,
    out_reported_as="_linalg_solve_ex", autocast="full")
def solve(A: Tensor, B: Tensor, left: bool) -> Tensor:
    """X with A X = B (or X A = B): A (…, n, n), B (…, n, k) or vectors (…, n).

    >>> import flambeau
    >>> flambeau.linalg.solve(flambeau.tensor([[2.0, 0.0], [0.0, 4.0]]), flambeau.ones(2))
    tensor([0.5000, 0.2500])
    """
    X, info = solve_ex(A, B, left=left)
    raise_failure(info, "torch.linalg.solve", lapack.SINGULAR)
    return X


@op("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    out_cast=CASTABLE_RESULT.replace("{name}", "tensorsolve"), out_reported_as=None,
    autocast="full")
def tensorsolve(self: Tensor, other: Tensor, dims: Any) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        self = movedim(self, tuple(dims), tuple(range(-len(dims), 0)))
    rank, shape = other._array.ndim, self._array.shape
    rows, columns = prod(other._array.shape), prod(shape[rank:])
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
                           f"== prod(self.shape[:other.ndim]), but got {columns} != {rows}")
    return reshape(solve(reshape(self, (rows, rows)), reshape(other, (-1,))), shape[rank:])


# ---- triangular equations -----------------------------------------------------------------------


def _triangle(X: Tensor, upper: bool, unitriangular: bool = False) -> Tensor:
    return triu(X, int(unitriangular)) if upper else tril(X, -int(unitriangular))


def _check_triangular(self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool
                      ) -> Any:
    name = "linalg.solve_triangular"
    check_square(self, name)
    check_matrix(B, name, "B")
    check_fit(self, B, left, name)
    refuse(self._array, "bBilUeW8", "triangular_solve_cpu")
    check_same_type(self, B, name)
    broadcast_shapes(self._array.shape[:-2], B._array.shape[:-2])
    return self, B, upper, left, unitriangular


def _triangular_vjp(grad: Tensor, needs: Any, self: Tensor, result: Tensor, upper: bool,
                    left: bool, unitriangular: bool) -> Any:
    if self._array.dtype.kind == "c" and self._array.flags.c_contiguous:
        # the conjugate lies by columns only as a transpose: so is the result
        gB = _transpose_last(triangular(conj(self), _transpose_last(grad), upper, unitriangular,
                                        not left))
    else:
        gB = triangular(adjoint(self), grad, not upper, unitriangular, left)
    if not needs[0]:
        return [None, gB]
    moved = matmul(gB, adjoint(result)) if left else matmul(adjoint(result), gB)
    return [_triangle(-moved, upper, unitriangular), gB]


def _triangular_jvp(self: Tensor, B: Tensor, self_t: Tensor, B_t: Tensor, result: Tensor,
                    upper: bool, left: bool, unitriangular: bool) -> Tensor:
    change = _triangle(self_t, upper, unitriangular)
    moved = matmul(change, result) if left else matmul(result, change)
    return triangular(self, B_t - moved, upper, unitriangular, left)


solve_triangular = op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor", kernel=lapack.solve_triangular, kernel_checks=True,
    canonical=_check_triangular, core="(n,n),(m,k)->(m,k)", vjp=_triangular_vjp,
    jvp=_triangular_jvp, out_type="expected scalar type {found} but found {out}",
    doc="""X with A X = B (or X A = B), where A is triangular: the other triangle is not read, nor,
    if `unitriangular`, the diagonal.

    >>> import flambeau
    >>> A = flambeau.tensor([[2.0, 1.0], [0.0, 1.0]])
    >>> flambeau.linalg.solve_triangular(A, flambeau.ones(2, 1), upper=True)
    tensor([[0.],
            [1.]])
    """)


def triangular(A: Tensor, B: Tensor, upper: bool, unitriangular: bool = False, left: bool = True
               ) -> Tensor:
    """A⁻¹ B of a triangular A. `adjoint(A)` of a lower A is upper: `upper` says what A is here."""
    return solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


def _check_triangular_solve(self: Tensor, A: Tensor, upper: bool, transpose: bool,
                            unitriangular: bool) -> Any:
    for name, tensor in (("b", self), ("A", A)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 "
                               f"dimensions, but it has {tensor._array.ndim} dimensions instead")
    check_solve(self, A, "triangular_solve")
    refuse(A._array, "bBilUeW8", "triangular_solve_cpu")
    broadcast_shapes(A._array.shape[:-2], self._array.shape[:-2])
    return self, A, upper, transpose, unitriangular


def _triangular_solve_vjp(grad: Any, needs: Any, A: Tensor, solution: Tensor, upper: bool,
                          transpose: bool, unitriangular: bool) -> Any:
    g, gA = grad
    gB = None
    if g is not None:
        gB = triangular_solve(g, conj(A), upper, not transpose, unitriangular)[0]
        if needs[1]:
            moved = -matmul(conj(solution), _transpose_last(gB)) if transpose else \
                -matmul(gB, adjoint(solution))
            gA = add_terms(_triangle(moved, upper, unitriangular), gA)
    return [gB, gA]


def _transpose_last(X: Tensor) -> Tensor:
    return transpose(X, -2, -1)


def _triangular_solve_kernel(*given: Any) -> Any:
    warn_once("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand "
              "will be removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its "
              "arguments reversed and does not return a copy of one of the inputs.\n"
              "X = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
              "X = torch.linalg.solve_triangular(A, B).")
    return lapack.triangular_solve(*given)


triangular_solve = op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    kernel=_triangular_solve_kernel, kernel_checks=True, canonical=_check_triangular_solve,
    core="(n,k),(n,n)->(n,k),(n,n)", batch=batch_leading(lambda: triangular_solve),
    vjp=_triangular_solve_vjp, out_type=OUT_TYPE, autocast="full",
    doc="`linalg.solve_triangular`, by its older name; it also gives a copy of A.")

# ---- by Cholesky's factors ----------------------------------------------------------------------


def _check_cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Any:
    for name, tensor in (("b", self), ("u", input2)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has "
                               f"{tensor._array.ndim} dimensions instead")
    check_solve(self, input2, "cholesky_solve")
    broadcast_shapes(input2._array.shape[:-2], self._array.shape[:-2])
    refuse(self._array, "bBilUeW8", "cholesky_solve_cpu")
    return self, input2, upper


def _through_factor(gA: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The gradient of a factor, of which one triangle is read, from that of L Lᴴ, or of Uᴴ U."""
    both = gA + adjoint(gA)
    if lies_by_columns(factor):
        factor = with_gradient_by_columns(factor)
    return triu(matmul(triu(factor), both)) if upper else tril(matmul(both, tril(factor)))


def _cholesky_solve_vjp(grad: Tensor, needs: Any, input2: Tensor, result: Tensor, upper: bool
                        ) -> Any:
    gB = cholesky_solve(grad, input2, upper)
    return [gB, _through_factor(-matmul(gB, adjoint(result)), input2, upper)
            if needs[1] else None]


cholesky_solve = op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    kernel=lapack.cholesky_solve, kernel_checks=True, canonical=_check_cholesky_solve,
    core="(n,k),(n,n)->(n,k)", vjp=_cholesky_solve_vjp, out_cast=CASTABLE_RESULT, out_rows=True,
    autocast="full", doc="X with A X = B, from the Cholesky factor of A.")


def _check_cholesky_inverse(self: Tensor, upper: bool) -> Any:
    check_square(self, "cholesky_inverse")
    refuse(self._array, "bBilUeW8", "cholesky_inverse_out_cpu")
    return self, upper


def _cholesky_inverse_vjp(grad: Tensor, self: Tensor, result: Tensor, upper: bool) -> Tensor:
    return _through_factor(-matmul(result, matmul(grad, result)), self, upper)


cholesky_inverse = op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", kernel=lapack.cholesky_inverse,
    kernel_checks=True, canonical=_check_cholesky_inverse, core="(n,n)->(n,n)",
    d_self=_cholesky_inverse_vjp, out_cast=CASTABLE_RESULT, autocast="full",
    out_rows="occupied", doc="The inverse of A from its Cholesky factor.")
