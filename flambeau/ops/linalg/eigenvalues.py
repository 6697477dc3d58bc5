"""Eigenvalues and eigenvectors of square matrices, over any leading dimensions.

The rules, with E_ij = λ_j - λ_i, follow

    Giles, An extended collection of matrix derivative results for forward and reverse mode
        automatic differentiation, 2008
    Walter and Lehmann, Algorithmic differentiation of linear algebra functions with application in
        optimum experimental design, 2010
    Boeddeker et al., On the computation of complex-valued gradients with application to
        statistically optimum beamforming, 2017

Gradients exist for functions that do not depend on the phases of the vectors.
"""
from __future__ import annotations

from typing import Any

from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.kernels.linalg import orthogonal
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.linalg.decompositions import check_phase
from flambeau.ops.linalg.solvers import solve_matrices
from flambeau.ops.linalg.support import (
    adjoint,
    check_square,
    differences,
    differentiating,
    identity,
    matmul,
    off_diagonal,
    real_diagonal,
    refuse_elements,
    scale_columns,
    scale_rows,
    with_type_of,
)
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.view.diagonal import diag_embed, diagonal

# ---- of symmetric and Hermitian matrices --------------------------------------------------------


def _eigh_vjp(grad: Any, eigenvalues: Tensor, eigenvectors: Tensor) -> Any:
    gL, gV = grad
    L, V = eigenvalues, eigenvectors
    if gV is None:
        return [None if gL is None else matmul(scale_columns(V, gL), adjoint(V))]
    M = matmul(adjoint(V), gV)
    if V._array.dtype.kind in "cW":
        check_phase(diagonal(M, 0, -2, -1), "linalg_eigh_backward", "eigenvectors")
    inner = M * off_diagonal(L._array.shape[-1], L) / differences(L)
    if gL is not None:
        inner = inner + scale_columns(identity(L._array.shape[-1], V), gL)
    result = matmul(matmul(V, inner), adjoint(V))
    return [(result + adjoint(result)) * 0.5]


def _check_symmetric(name: str) -> Any:
    def canonical(self: Tensor, UPLO: str) -> Any:
        check_square(self, name)
        if UPLO.upper() not in ("L", "U"):
            raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
        refuse_elements(self, "bBilUeW8", "linalg_eigh_cpu")
        return self, UPLO
    return canonical


eigh = op(
    "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    kernel=orthogonal.eigh, kernel_checks=True, canonical=_check_symmetric("linalg.eigh"),
    core="(n,n)->(n),(n,n)", vjp=_eigh_vjp, out_type=OUT_TYPE, out_reported_as="_linalg_eigh",
    autocast="full", aten=(AtenForm(
        "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> "
        "(Tensor eigenvalues, Tensor eigenvectors)", lambda self, UPLO: (self, UPLO, True)),),
    doc="""The eigenvalues, rising, and eigenvectors (columns) of a symmetric or Hermitian matrix,
    of which one triangle is read.

    >>> import flambeau
    >>> flambeau.linalg.eigh(flambeau.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """)

_INNER: dict[str, Any] = {"kernel_checks": True, "core": "(n,n)->(n)", "function": False,
                          "method": False, "out": False}
_symmetric_values = op("_eigvalsh(Tensor self, str UPLO) -> Tensor", kernel=orthogonal.eigvalsh,
                       canonical=_check_symmetric("linalg.eigh"), **_INNER)


@op("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", out_type=OUT_TYPE,
    out_reported_as="_linalg_eigh", autocast="full")
def eigvalsh(self: Tensor, UPLO: str) -> Tensor:
    """The eigenvalues, rising, of a symmetric or Hermitian matrix."""
    return eigh(self, UPLO)[0] if differentiating(self) else _symmetric_values(self, UPLO)


# ---- of all others ------------------------------------------------------------------------------


def _eig_vjp(grad: Any, eigenvalues: Tensor, eigenvectors: Tensor) -> Any:
    gL, gV = grad
    L, V = eigenvalues, eigenvectors
    if gL is None and gV is None:
        return [None]
    inner = None
    if gV is not None:
        M = matmul(adjoint(V), gV)
        check_phase(diagonal(M, 0, -2, -1), "linalg_eig_backward", "eigenvectors")
        # vectors of length 1 do not move along themselves
        M = M - scale_columns(matmul(adjoint(V), V), with_type_of(real_diagonal(M), V))
        inner = M * off_diagonal(L._array.shape[-1], L) / conjugated(differences(L))
    VH = adjoint(V)
    if inner is None:
        return [solve_matrices(VH, scale_rows(VH, gL))]
    if gL is not None:
        inner = inner + diag_embed(gL)
    return [solve_matrices(VH, matmul(inner, VH))]


def _check_general(name: str) -> Any:
    def canonical(self: Tensor) -> Any:
        if self._array.dtype.char in characters("bBilU8"):
            raise RuntimeError(f"Unknown Complex ScalarType for {type_name(self.dtype)}")
        check_square(self, name)
        refuse(self._array, "eW8", "linalg_eig_out_cpu")
        return (self,)
    return canonical


eig = op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", kernel=orthogonal.eig,
    kernel_checks=True, canonical=_check_general("linalg.eig"), core="(n,n)->(n),(n,n)",
    vjp=_eig_vjp, autocast="full",
    doc="""The eigenvalues, in no order, and eigenvectors (columns of length 1) of a square matrix;
    both complex.

    >>> import flambeau
    >>> flambeau.linalg.eig(flambeau.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """)
_general_values = op("_eigvals(Tensor self) -> Tensor", kernel=orthogonal.eigvals,
                     canonical=_check_general("linalg.eigvals"), **_INNER)


@op("linalg_eigvals(Tensor self) -> Tensor", out_reported_as="aten::linalg_eigvals",
    autocast="full",
    out_cast="torch.linalg.eigvals: Expected eigenvalues to be safely castable from {found} dtype, "
    "but got eigenvalues with dtype {out}")
def eigvals(self: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no order."""
    return eig(self)[0] if differentiating(self) else _general_values(self)
