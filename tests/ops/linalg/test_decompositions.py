"""Factorisations: that they multiply back, and derivatives of what does not depend on the choice of
signs and phases, to second order; errors; vmap; lists of tensors."""
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import KINDS, lower_only, matrix
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau import func, linalg


def drawn(*shape, kind="real", seed=0):
    rng = np.random.RandomState(seed)
    a = rng.randn(*shape)
    if kind == "complex":
        a = a + 1j * rng.randn(*shape)
    return flambeau.tensor(a)


def real(t):
    return t.real if t.is_complex() else t


def weighted(t, seed=7):
    """A real number that depends on all elements."""
    w = drawn(*t.shape, kind="complex" if t.is_complex() else "real", seed=seed)
    return real((t * w).sum())


def hermitian(a):
    return a + a.mH


def definite(a):
    return a @ a.mH + 2 * flambeau.eye(a.shape[-1], dtype=a.dtype)


def projectors(v):
    """vᵢ vᵢᴴ for each column: no phase in it."""
    return v.unsqueeze(-2) * v.conj().unsqueeze(-3)


def of_svd(a):
    U, S, Vh = linalg.svd(a, full_matrices=False)
    return weighted(U * S.exp().unsqueeze(-2) @ Vh) + weighted(projectors(U)) + weighted(S, 3)


def of_svd_full(a):
    U, S, Vh = linalg.svd(a)
    k = S.shape[-1]
    return weighted(projectors(U[..., :k])) + weighted(projectors(Vh.mH[..., :k]))


def of_eigh(a):
    L, V = linalg.eigh(hermitian(a))
    return weighted(V * L.sin().unsqueeze(-2) @ V.mH) + weighted(projectors(V)) + weighted(L, 3)


def of_eigh_upper(a):
    return weighted(linalg.eigvalsh(hermitian(a), "U"))


def of_eig(a):
    L, V = linalg.eig(a)
    order = flambeau.argsort(L.real + 2 * L.imag)
    return weighted(projectors(V[..., order])) + weighted(L[order], 3)


def of_cholesky(a):
    return weighted(linalg.cholesky(definite(a))) + weighted(
        linalg.cholesky(definite(a), upper=True), 3)


def of_cholesky_solve(a):
    L = linalg.cholesky(definite(a))
    return weighted(flambeau.cholesky_solve(a, L)) + weighted(flambeau.cholesky_inverse(L)) \
        + weighted(flambeau.cholesky_solve(a, L.mH, upper=True))


def of_qr(a):
    Q, R = linalg.qr(a)
    return weighted(Q) + weighted(R, 3)


def of_reflections(a):
    """Through the reflections themselves: neither they nor their product is unitary here."""
    tau = a[0].sin()
    product = linalg.householder_product(a, tau)
    return weighted(product) + weighted(flambeau.ormqr(a, tau, flambeau.cos(a)), 3) + weighted(
        flambeau.ormqr(a, tau, a.mT.exp(), left=False, transpose=True), 5)


def of_pinv(a):
    return weighted(linalg.pinv(a)) + weighted(linalg.pinv(hermitian(a[:2, :2]), hermitian=True))


def of_det(a):
    return weighted(linalg.det(a))


CASES = [(f, shape, kind) for kind in ("real", "complex") for f, shape in [
    (of_svd, (3, 3)), (of_svd, (4, 3)), (of_svd, (3, 4)), (of_svd_full, (2, 3)),
    (of_eigh, (3, 3)), (of_eigh_upper, (3, 3)), (of_eig, (3, 3)), (of_cholesky, (3, 3)),
    (of_cholesky_solve, (3, 3)), (of_qr, (4, 3)), (of_qr, (3, 3)), (of_qr, (2, 4)),
    (of_reflections, (4, 3)), (of_reflections, (3, 3)), (of_pinv, (3, 4))]]
EPS = 1e-5


@pytest.mark.parametrize("f,shape,kind", CASES,
                         ids=[f"{f.__name__}-{s}-{k}" for f, s, k in CASES])


def test_derivatives(f, shape, kind):
    a, d, w = (drawn(*shape, kind=kind, seed=s) for s in (1, 2, 3))

    def inner(x, y):
        return float(real((x.conj() * y).sum()))

    def gradient(x):
        x = x.clone().requires_grad_()
        return flambeau.autograd.grad(f(x), x)[0]
    slope = float((f(a + EPS * d) - f(a - EPS * d)) / (2 * EPS))
    assert inner(gradient(a), d) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert float(func.jvp(f, (a,), (d,))[1]) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    curve = (inner(gradient(a + EPS * d), w) - inner(gradient(a - EPS * d), w)) / (2 * EPS)
    x = a.clone().requires_grad_()
    g, = flambeau.autograd.grad(f(x), x, create_graph=True)
    twice, = flambeau.autograd.grad(real((g * w.conj()).sum()), x)
    assert inner(twice, d) == pytest.approx(curve, rel=1e-5, abs=1e-5)
    ahead = func.jvp(func.grad(f), (a,), (d,))[1]
    assert inner(ahead, w) == pytest.approx(curve, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("f,shape,kind", CASES,
                         ids=[f"{f.__name__}-{s}-{k}" for f, s, k in CASES])


def test_vmap(f, shape, kind):
    if f is of_eig:
        pytest.skip("sorts by a key of one matrix")
    batch = drawn(2, *shape, kind=kind, seed=5)
    wanted = flambeau.stack([func.grad(f)(a) for a in batch])
    found = func.vmap(func.grad(f))(batch)
    assert flambeau.allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4), (0, 3), (2, 0, 0)])
def test_factors_multiply_back(shape, kind):
    a = drawn(*shape, kind=kind)

    def equal(x, y):
        assert flambeau.allclose(x, y.to(x.dtype), atol=1e-10)
    for full in (True, False):
        U, S, Vh = linalg.svd(a, full_matrices=full)
        k = S.shape[-1]
        equal(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], a)
    U, S, V = flambeau.svd(a)
    equal(U * S.unsqueeze(-2) @ V.mH, a)
    for mode in ("reduced", "complete"):
        Q, R = linalg.qr(a, mode)
        equal(Q @ R, a)
    P, L, U = linalg.lu(a)
    equal(P @ L @ U, a)
    if shape[-1] == shape[-2]:
        L, V = linalg.eig(a)
        equal(a.to(V.dtype) @ V, V * L.unsqueeze(-2))
        b = definite(a)
        equal(linalg.ldl_solve(*linalg.ldl_factor(b, hermitian=True), a, hermitian=True),
              linalg.solve(b, a))
        C = linalg.cholesky(b)
        equal(C @ C.mH, b)
        L, V = linalg.eigh(b)
        equal(V * L.unsqueeze(-2) @ V.mH, b)


def test_values_alone():
    """Without derivatives, vectors are not computed; the values are the same."""
    a = drawn(2, 4, 4)
    assert flambeau.allclose(linalg.svdvals(a), linalg.svd(a).S)
    assert flambeau.allclose(linalg.eigvalsh(hermitian(a)), linalg.eigh(hermitian(a))[0])
    assert flambeau.allclose(linalg.eigvals(a).prod(-1).real, linalg.det(a))


def test_determinant_of_singular_matrices():
    # PyTorch's gradient loses digits here; the cofactors are exact
    a = flambeau.diag(flambeau.tensor([1.0, 2.0, 0.0])).requires_grad_()
    linalg.det(a).backward()
    assert flambeau.allclose(a.grad, flambeau.diag(flambeau.tensor([0.0, 0.0, 2.0])), atol=1e-6)


def test_layout_is_by_columns():
    a = drawn(2, 3, 3)
    assert linalg.inv(a).stride() == (9, 1, 3)
    assert linalg.cholesky(definite(a)).stride() == (9, 1, 3)
    assert linalg.svd(a).U.stride() == (9, 1, 3)
    L = linalg.cholesky(definite(a), upper=True)
    assert flambeau.cholesky_inverse(L).stride() == (9, 1, 3)
    assert flambeau.triangular_solve(a, L).cloned_coefficient.stride() == (9, 1, 3)
    assert linalg.solve_triangular(L, a[:, :2], upper=True, left=False).stride() == (6, 1, 2)
    assert linalg.householder_product(*flambeau.geqrf(a)).stride() == (9, 1, 3)


zero, eye = flambeau.zeros(3, 3), flambeau.eye(3)
ERRORS = [
    (lambda: linalg.cholesky(zero), linalg.LinAlgError,
     "linalg.cholesky: The factorization could not be completed because the input is not "
     "positive-definite (the leading minor of order 1 is not positive-definite)."),
    (lambda: linalg.cholesky(flambeau.stack([eye, zero])), linalg.LinAlgError,
     "linalg.cholesky: (Batch element 1): The factorization"),
    (lambda: linalg.inv(zero), linalg.LinAlgError,
     "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because "
     "the input matrix is singular."),
    (lambda: linalg.solve(zero, eye), linalg.LinAlgError,
     "torch.linalg.solve: The solver failed because the input matrix is singular."),
    (lambda: linalg.svd(eye * float("nan")), linalg.LinAlgError,
     "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite"),
    (lambda: linalg.lu_factor(zero), RuntimeError, "torch.linalg.lu_factor: U[1,1] is zero"),
    (lambda: linalg.inv(flambeau.ones(2, 3)), RuntimeError,
     "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
    (lambda: linalg.det(flambeau.ones(3)), RuntimeError,
     "linalg.det: The input tensor A must have at least 2 dimensions."),
    (lambda: linalg.eigh(flambeau.ones(2, 2, dtype=flambeau.int64)), RuntimeError,
     "\"linalg_eigh_cpu\" not implemented for 'Long'"),
    (lambda: linalg.qr(eye, "x"), RuntimeError, "qr received unrecognized mode 'x'"),
    (lambda: linalg.eigh(eye, "x"), RuntimeError, "Expected UPLO argument to be 'L' or 'U'"),
    (lambda: linalg.solve(eye, eye.double()), RuntimeError,
     "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of "
     "type Double instead"),
    (lambda: linalg.norm(flambeau.ones(2, 3, 3), 2), RuntimeError,
     "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D."),
    (lambda: linalg.matrix_norm(eye, 3), RuntimeError,
     "linalg.matrix_norm: Order 3 not supported."),
    (lambda: linalg.eigh(flambeau.stack([eye, eye * float("nan")])), linalg.LinAlgError,
     "linalg.eigh: (Batch element 1): The algorithm failed to converge"),
    (lambda: flambeau.ormqr(zero[0, 0], zero[0, 0], eye), RuntimeError,
     "torch.ormqr: input must have at least 2 dimensions."),
    (lambda: flambeau.ormqr(eye, zero[0, :2], eye), RuntimeError,
     "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])"),
    (lambda: flambeau.ormqr(eye, zero, eye), RuntimeError,
     "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to 2 "
     "and input.ndim is equal to 2"),
    (lambda: flambeau.ormqr(eye, zero[0], eye[None]), RuntimeError,
     "torch.ormqr: Expected other to have the same number of dimensions as input"),
    (lambda: flambeau.ormqr(eye, zero[0], eye.double()), RuntimeError,
     "torch.ormqr: Expected input and other to have the same dtype, but input has dtypeFloat and "
     "other has dtype Double"),
    (lambda: flambeau.ormqr(eye.long(), zero[0].long(), eye.long()), NotImplementedError,
     '"ormqr_cpu" not implemented for \'Long\''),
    (lambda: linalg.householder_product(eye, zero[0].double()), RuntimeError,
     "torch.linalg.householder_product: tau dtype Double does not match input dtype Float"),
    (lambda: linalg.ldl_solve(eye, flambeau.ones(2, dtype=flambeau.int32), eye), RuntimeError,
     "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got "
     "pivots with shape [2] instead"),
    (lambda: linalg.ldl_solve(eye, flambeau.zeros(3, dtype=flambeau.int32), eye), RuntimeError,
     "torch.linalg.ldl_solve: pivots are not"),
    (lambda: flambeau.cholesky_solve(eye[:2], eye), RuntimeError,
     "Incompatible matrix sizes for cholesky_solve: each A matrix is 3 by 3 but each b matrix is 2 "
     "by 3"),
    (lambda: flambeau.triangular_solve(eye, eye.double()), RuntimeError,
     "Expected b and A to have the same dtype, but found b of type Float and A of type Double"),
    (lambda: linalg.lu_solve(eye, flambeau.ones(2, dtype=flambeau.int32), eye), RuntimeError,
     "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"),
    (lambda: linalg.vander(eye[0], N=1), RuntimeError, "N must be greater than 1."),
    (lambda: linalg.pinv(eye.half()), RuntimeError, "linalg.pinv(Half{[3, 3]}): expected a tensor"),
]


@pytest.mark.parametrize("make,kind,message", ERRORS, ids=range(len(ERRORS)))
def test_errors(make, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        make()


def test_no_matrices():
    ld, pivots, b = flambeau.zeros(0, 2, 2), flambeau.zeros(0, 2, dtype=flambeau.int32), zero[:2]
    assert linalg.ldl_solve(ld, pivots, b).shape == (0, 2, 3)


def test_constant_results_are_differentiable():
    a = drawn(2, 2).requires_grad_()
    assert flambeau.autograd.grad(linalg.matrix_power(a, 0).sum(), a)[0].tolist() == [[0, 0]] * 2
    tau = flambeau.zeros(0, dtype=flambeau.float64, requires_grad=True)
    product = linalg.householder_product(a, tau)
    assert product.requires_grad and flambeau.autograd.grad(product.sum(), a,
                                                            allow_unused=True) == (None,)
    assert linalg.pinv(flambeau.zeros(0, 3, requires_grad=True)).requires_grad


def test_half_precision():
    a = flambeau.tensor([[0.0, 1.0], [-1.0, 0.0]]).bfloat16()
    assert linalg.matrix_exp(a).equal(linalg.matrix_exp(a.double()).bfloat16())
    x = flambeau.full((5,), 100.0).half()
    assert linalg.vector_norm(x, 6).item() == pytest.approx(100 * 5 ** (1 / 6), rel=1e-3)


def test_powers_of_a_number():
    assert linalg.vander(flambeau.tensor(2), N=3).tolist() == [[1, 2, 4]]


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_core_shapes_of_different_rank_are_batched(in_dims):
    a, tau = drawn(2, 3, 3), drawn(2, 3, seed=1)
    given = [t if d == 0 else t[0] for t, d in zip((a, tau), in_dims)]
    found = func.vmap(linalg.householder_product, in_dims)(*given)
    for i in range(2):
        one = [t[i] if d == 0 else t for t, d in zip(given, in_dims)]
        assert flambeau.allclose(found[i], linalg.householder_product(*one))


def test_info_instead_of_errors():
    assert linalg.cholesky_ex(flambeau.stack([eye, zero])).info.tolist() == [0, 1]
    assert linalg.inv_ex(zero).info.item() == 1
    assert linalg.solve_ex(flambeau.stack([zero, eye]), eye).info.tolist() == [1, 0]


def test_phases_are_refused():
    a = drawn(3, 3, kind="complex").requires_grad_()
    with pytest.raises(RuntimeError, match="linalg_eigh_backward: The eigenvectors in the complex"):
        (linalg.eigh(hermitian(a)).eigenvectors * 1j).real.sum().backward()


def test_low_rank():
    flambeau.manual_seed(0)
    a = drawn(20, 15) @ flambeau.diag(0.5 ** flambeau.arange(15.0, dtype=flambeau.float64))
    wanted = linalg.svdvals(a)[:4]
    U, S, _ = flambeau.svd_lowrank(a, 4, niter=6)
    assert flambeau.allclose(S, wanted, rtol=1e-5)
    assert flambeau.allclose(U.mT @ U, flambeau.eye(4, dtype=a.dtype))
    centred = a - a.mean(0, keepdim=True)
    found = flambeau.pca_lowrank(a, 3, niter=6)[1]
    assert flambeau.allclose(found, linalg.svdvals(centred)[:3], rtol=1e-5)
    s = a.mT @ a + flambeau.eye(15, dtype=a.dtype)
    E, X = flambeau.lobpcg(s, 2)
    assert flambeau.allclose(E, linalg.eigvalsh(s).flip(0)[:2], rtol=1e-6)
    assert flambeau.allclose(s @ X, X * E, atol=1e-4)


def test_foreach():
    a, b = [flambeau.ones(2), flambeau.full((3,), 2.0)], [flambeau.ones(2), flambeau.ones(3)]

    def lists(found):
        return [t.tolist() for t in found]
    assert lists(flambeau._foreach_add(a, b, alpha=2)) == [[3, 3], [4, 4, 4]]
    assert lists(flambeau._foreach_mul(a, [2, 3])) == [[2, 2], [6, 6, 6]]
    assert lists(flambeau._foreach_addcmul(a, a, b, value=2)) == [[3, 3], [6, 6, 6]]
    assert lists(flambeau._foreach_pow(2.0, a)) == [[2, 2], [4, 4, 4]]
    assert lists(flambeau._foreach_maximum(a, 1.5)) == [[1.5, 1.5], [2, 2, 2]]
    flambeau._foreach_lerp_(a, b, 0.5)
    assert lists(a) == [[1, 1], [1.5, 1.5, 1.5]]
    with pytest.raises(RuntimeError, match="Tensor list must have same number of elements"):
        flambeau._foreach_add(a, [1.0])
    with pytest.raises(RuntimeError, match="Tensor list must have at least one tensor"):
        flambeau._foreach_exp([])


def test_memory_methods():
    x = flambeau.arange(6.0)
    assert flambeau.empty(0).set_(x).is_set_to(x)
    y = x.clone().resize_(2, 2)
    assert y.tolist() == [[0, 1], [2, 3]] and y.untyped_storage().nbytes() == 24
    assert flambeau.empty(0).resize_(3).shape == (3,)
    assert x.clone().as_strided_((2, 2), (1, 2), 1).tolist() == [[1, 3], [2, 4]]
    assert flambeau.zeros(7, 3).fill_diagonal_(5, wrap=True).sum() == 30
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        x.clone().requires_grad_().resize_(2)


@pytest.mark.parametrize("generalised", [False, True])
def test_lobpcg_has_symmetric_derivatives_of_both_orders(generalised):
    def pairs(A, B=None):
        E, U = flambeau.lobpcg(A, k=2, B=B)
        at = U.abs().max(-2, keepdim=True)[1]
        return E, U * U.gather(-2, at).sign()
    flambeau.manual_seed(0)
    A = flambeau.rand(6, 6, dtype=flambeau.float64)
    A = (A @ A.mT / 10).requires_grad_()
    B = flambeau.eye(6, dtype=flambeau.float64) * 2 + 0.1 * A.detach()
    inputs = (A, B.requires_grad_()) if generalised else (A,)
    assert flambeau.autograd.gradcheck(pairs, inputs)
    assert flambeau.autograd.gradgradcheck(pairs, inputs, atol=1e-4)
    found = flambeau.autograd.grad(sum(p.sum() for p in pairs(*inputs)), inputs)
    assert all(flambeau.allclose(g, g.mT, rtol=1e-12) for g in found)


def test_reflections_whose_factors_lie_in_the_matrix():
    """LAPACK writes ones on the diagonal of what it is given while it runs."""
    columns = flambeau.randn(5, 5, dtype=flambeau.float64).t()[:, :4]
    tau = columns[:4, 0]
    product = flambeau.linalg.householder_product
    assert flambeau.equal(product(columns, tau), product(columns.clone(), tau.clone()))


@pytest.mark.parametrize("order, expected", [
    (0.5, [0, -0.35355339059327373, 0.17677669529663687]), (1, [0, 0, 0]),
    (1.5, [0, 0.11806590200055789, -0.05903295100027883]),
    (2, [0.4472135954999579, 0.17888543819998326, -0.08944271909999135]), (-1, [0, 0, 0]),
    (3, [0, 0.20544037758537326, -0.10272018879268652])])


def test_second_derivatives_of_norms_of_vectors_with_zeros(order, expected):
    """What no derivative has counts as 0, and leaves the others what they are."""
    x = flambeau.tensor([0.0, 1.0, 2.0], dtype=flambeau.double, requires_grad=True)
    slope, = flambeau.autograd.grad(flambeau.linalg.norm(x, order), x, create_graph=True)
    second, = flambeau.autograd.grad((slope * flambeau.tensor([1.0, 2.0, 3.0])).sum(), x)
    assert second.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3), (3, 1), (1, 1)])
def test_reflections_have_derivatives(shape, kind):
    A = drawn(*shape, kind=kind)
    kept = flambeau.geqrf(A)
    for found, expected in zip(flambeau.geqrf(A.clone().requires_grad_()), kept):
        flambeau.testing.assert_close(found.detach(), expected)
    A.requires_grad_()
    assert flambeau.autograd.gradcheck(flambeau.geqrf, A, check_forward_ad=True,
                                       check_batched_grad=True)
    assert flambeau.autograd.gradgradcheck(flambeau.geqrf, A)


def test_columns_that_are_not_turned():
    A = flambeau.tensor([[2.0, 1.0], [0.0, 3.0], [0.0, 0.0]], requires_grad=True)
    found = flambeau.geqrf(A)
    assert found.tau.tolist() == flambeau.geqrf(A.detach()).tau.tolist() == [0, 0]
    assert found.a.equal(A) and found.a.grad_fn.name() == "GeqrfBackward0"
    found.a.sum().backward()
    assert A.grad.isfinite().all()


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_factors_of_indefinite_matrices_have_derivatives(kind, hermitian, blocks):
    """Also where zeros on the diagonal make the pivots blocks of two rows."""
    A, B = drawn(2, 4, 4, kind=kind), drawn(2, 4, 2, kind=kind, seed=1)
    A = A + (A.mH if hermitian else A.mT)
    if blocks == 2:
        A = A - flambeau.diag_embed(A.diagonal(0, -2, -1))
    LD, pivots = linalg.ldl_factor(A, hermitian=hermitian)
    assert (pivots < 0).any() or blocks == 1

    def factor(A):
        return linalg.ldl_factor(A, hermitian=hermitian).LD

    def solve(LD, B):
        return linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)

    flambeau.testing.assert_close(A @ solve(LD.clone().requires_grad_(), B), B)
    check, twice = flambeau.autograd.gradcheck, flambeau.autograd.gradgradcheck
    for function, *points in ((factor, A), (lambda B: solve(LD, B), B),
                              (lambda A, B: solve(factor(A), B), A, B)):
        points = [p.clone().requires_grad_() for p in points]
        assert check(function, points, check_forward_ad=True)
        assert twice(function, points)
    rows = func.vmap(lambda A, p, B: linalg.ldl_solve(A, p, B, hermitian=hermitian))(LD, pivots, B)
    flambeau.testing.assert_close(rows, solve(LD, B))


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

for _name in ("linalg.cholesky", "linalg.cholesky_ex", "cholesky"):
    lower_only(family, _name)


@family("linalg.qr")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS] + [
        call(matrix(r, 4, 3), "r").but(smooth=False),
        call(matrix(r, 4, 3), "complete").but(smooth=False)]


@family("qr")
def _(r):
    return [call(matrix(r, 4, 3)), call(matrix(r, 3, 4), False)]


@family("linalg.svd")
def _(r):
    return [call(np.diag([4.0, 2.0, 1.0])).but(smooth=False)]


@family("svd")
def _(r):
    return [call(np.diag([4.0, 2.0, 1.0])).but(smooth=False),
            call(matrix(r, 2, 3, 4), compute_uv=False)]


@family("linalg.svdvals")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


class TestSamples(SampleTests):
    family = family


def test_outputs_that_get_a_shape_get_the_order_of_the_result():
    for decompose in (linalg.inv, linalg.cholesky):
        a, out = flambeau.eye(3) * 4, flambeau.empty(0)
        assert decompose(a, out=out).stride() == decompose(a).stride() == out.stride() == (1, 3)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([(3, 3), (2, 3, 3)]), st.sampled_from(["cholesky", "qr", "pinv"]))
def test_gradients_lie_column_by_column(shape, name):
    x = flambeau.randn(*shape, generator=flambeau.Generator().manual_seed(0))
    x = (x @ x.mT + flambeau.eye(3)).requires_grad_()
    found = getattr(flambeau.linalg, name)(x)
    parts = found if isinstance(found, tuple) else [found]
    grad, = flambeau.autograd.grad([(one * one).sum() for one in parts], [x])
    assert grad.stride()[-2:] == (1, 3)
