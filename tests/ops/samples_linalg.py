"""Samples of linear algebra: functions of matrices that are unique, and others through invariants
in `test_linalg.py`."""
import numpy as np
from samples import Samples, call

family = Samples()


def square(r, *lead, n=3, kind="real"):
    """Well-conditioned matrices, real and complex."""
    a = r.rng.randn(*lead, n, n)
    if kind == "complex":
        a = a + 1j * r.rng.randn(*lead, n, n)
    return a + 2.5 * np.eye(n)


def matrix(r, *shape, kind="real"):
    return r.complex(*shape) if kind == "complex" else np.asarray(r.rng.randn(*shape))


def definite(r, *lead, n=3, kind="real"):
    a = square(r, *lead, n=n, kind=kind)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(n)


KINDS = ("real", "complex")


def of_square(*names, batched=True, **options):
    for name in names:
        def draw(r, name=name):
            calls = [call(square(r, kind=k), **options) for k in KINDS]
            return calls + ([call(square(r, 2, kind=k), **options) for k in KINDS]
                            if batched else [])
        family[name] = draw


of_square("linalg.inv", "linalg.inv_ex", "inverse", "linalg.det", "det", "linalg.slogdet",
          "slogdet", "linalg.matrix_exp", "matrix_exp", "linalg.lu_factor", "linalg.lu_factor_ex",
          "linalg.lu", "lu", "linalg.pinv", "pinverse", "linalg.cond", "linalg.matrix_rank",
          "adjoint", "linalg.eigvals", "linalg.svdvals", "linalg.diagonal")


@family("logdet")
def _(r):
    return [call(definite(r, 2)), call(definite(r, kind="complex"))]


def lower_only(name):
    # only one triangle is read: differences in the other are no derivatives
    @family(name)
    def _(r):
        return [call(definite(r, *lead, kind=k)).but(smooth=False)
                for k in KINDS for lead in ((), (2,))]


for _name in ("linalg.cholesky", "linalg.cholesky_ex", "cholesky", "linalg.eigvalsh",
              "linalg.ldl_factor", "linalg.ldl_factor_ex"):
    lower_only(_name)


@family("linalg.lu_solve")
def _(r):
    p = np.array([2, 3, 3], np.int32)
    return [call(square(r), p, matrix(r, 3, 2)),
            call(square(r, 2, kind="complex"), np.stack([p, p]),
                 matrix(r, 2, 3, 2, kind="complex")),
            call(square(r, 2), np.stack([p, p]), matrix(r, 2, 3), left=False),
            call(square(r, kind="complex"), p, matrix(r, 3, 2, kind="complex"), adjoint=True)]


@family("lu_solve")
def _(r):
    return [call(matrix(r, 3, 2), square(r), np.array([2, 3, 3], np.int32))]


@family("lu_unpack")
def _(r):
    return [call(matrix(r, 3, 3), np.array([2, 3, 3], np.int32)),
            call(matrix(r, 2, 3, 4), np.array([[2, 3, 3], [1, 2, 3]], np.int32))]


family.untested["lu_permutation"] = "integers in, constants out; through lu"


@family("linalg.ldl_solve")
def _(r):
    return [call(square(r), np.array([1, 2, 3], np.int32), matrix(r, 3, 2)).but(smooth=False)]


@family("linalg.solve")
def _(r):
    calls = [call(square(r, kind=k), matrix(r, 3, 2, kind=k)) for k in KINDS]
    return calls + [call(square(r, 2), matrix(r, 3)), call(square(r, 2), matrix(r, 2, 3)),
                    call(square(r), matrix(r, 2, 3, 2)),
                    call(square(r, kind="complex"), matrix(r, 2, 3, kind="complex"), left=False)]


@family("linalg.solve_ex")
def _(r):
    return [call(square(r, 2), matrix(r, 3, 2))]


@family("linalg.solve_triangular")
def _(r):
    return [call(square(r, kind=k), matrix(r, 3, 2, kind=k), upper=u) for k in KINDS
            for u in (True, False)] + [
        call(square(r), matrix(r, 2, 2, 3), upper=True, left=False),
        call(square(r, 2), matrix(r, 3, 2), upper=False, unitriangular=True)]


@family("triangular_solve")
def _(r):
    return [call(matrix(r, 3, 2), square(r)), call(matrix(r, 3, 2), square(r), False),
            call(matrix(r, 3, 2), square(r), transpose=True)]


family.untested["cholesky_solve"] = family.untested["cholesky_inverse"] = (
    "PyTorch's gradients of triangles that are not read are not zero; in test_linalg.py")


@family("linalg.lstsq")
def _(r):
    return [call(matrix(r, 4, 2, kind=k), matrix(r, 4, 3, kind=k)) for k in KINDS] + [
        call(matrix(r, 2, 2, 4), matrix(r, 2, 2, 3)),
        call(matrix(r, 2, 4, 2), matrix(r, 2, 4, 1), driver="gelsd").but(smooth=False),
        call(matrix(r, 4, 2), matrix(r, 4)), call(matrix(r, 4, 2), matrix(r, 4, 1), driver="gels")]


@family("linalg.matrix_power")
def _(r):
    return [call(square(r, kind=k), n) for k in KINDS for n in (0, 1, 3, -2)]


@family("matrix_power")
def _(r):
    return [call(square(r, 2), 5)]


@family("linalg.matrix_norm")
def _(r):
    orders = ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    return [call(matrix(r, 2, 3, 4), o) for o in orders] + [
        call(matrix(r, 2, 3, 4, kind="complex"), o, (0, 2), True) for o in orders]


@family("linalg.norm")
def _(r):
    return [call(matrix(r, 3, 4)), call(matrix(r, 2, 3, 4)), call(matrix(r, 3, 4), 2),
            call(matrix(r, 3, 4), "nuc"), call(matrix(r, 3), 3), call(matrix(r, 2, 3), 1, 1),
            call(matrix(r, 2, 3, 2), -1, (2, 0))]


@family("linalg.cond")
def _(r):
    return [call(square(r, 2), p) for p in (None, 2, -2, 1, -1, np.inf, "fro", "nuc")] + [
        call(matrix(r, 2, 3, kind="complex"))]


@family("linalg.matrix_rank")
def _(r):
    low = matrix(r, 4, 2) @ matrix(r, 2, 3)
    return [call(low), call(matrix(r, 2, 3, 4)), call(definite(r), hermitian=True),
            call(low, tol=1e3), call(low, rtol=0.3)]


@family("linalg.pinv")
def _(r):
    low = matrix(r, 4, 2) @ matrix(r, 2, 3)
    return [call(matrix(r, *s, kind=k)) for s in ((4, 3), (2, 3, 4)) for k in KINDS] + [
        call(low).but(smooth=False), call(definite(r), hermitian=True).but(smooth=False),
        call(matrix(r, 3, 3), rtol=0.01)]


@family("linalg.lu")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


@family("linalg.lu_factor")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


@family("linalg.svdvals")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


@family("linalg.det")
def _(r):
    low = matrix(r, 3, 2) @ matrix(r, 2, 3)
    return [call(matrix(r, *s, 3, 3, kind=k)) for s in ((), (2,)) for k in KINDS] + [
        call(matrix(r, 0, 0)), call(np.zeros((3, 3))).but(smooth=False),
        call(low).but(smooth=False)]


@family("linalg.qr")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS] + [
        call(matrix(r, 4, 3), "r").but(smooth=False),
        call(matrix(r, 4, 3), "complete").but(smooth=False)]


@family("qr")
def _(r):
    return [call(matrix(r, 4, 3)), call(matrix(r, 3, 4), False)]


@family("geqrf")
def _(r):
    return [call(matrix(r, 2, 4, 3)), call(matrix(r, 3, 4))]


@family("linalg.householder_product")
def _(r):
    return [call(matrix(r, 4, 3, kind=k), matrix(r, 2, kind=k)) for k in KINDS] + [
        call(matrix(r, 2, 4, 3), matrix(r, 2, 3))]


@family("orgqr")
def _(r):
    return [call(matrix(r, 4, 3), matrix(r, 3))]


@family("ormqr")
def _(r):
    return [call(matrix(r, 4, 3, kind=k), matrix(r, 3, kind=k), matrix(r, 4, 2, kind=k))
            for k in KINDS] + [
        call(matrix(r, 4, 3), matrix(r, 3), matrix(r, 2, 4), left=False, transpose=True)]


@family("linalg.tensorinv")
def _(r):
    return [call(matrix(r, 2, 3, 6)), call(matrix(r, 6, 3, 2), ind=1)]


@family("linalg.tensorsolve")
def _(r):
    return [call(matrix(r, 2, 3, 6), matrix(r, 2, 3)),
            call(matrix(r, 2, 6, 3), matrix(r, 2, 3), dims=(1,))]


@family("linalg.vander")
def _(r):
    return [call(matrix(r, 3)), call(matrix(r, 2, 3), N=4), call(r.integers(1, 4, 3))]


@family("vander")
def _(r):
    return [call(matrix(r, 3)), call(matrix(r, 3), 4, True), call(r.integers(1, 4, 3), 2)]


@family("linalg.eig")
def _(r):
    # phases are a choice: values alone are compared, in test_linalg.py
    return [call(np.diag([1.0, 2.0, 4.0])).but(smooth=False)]


@family("linalg.eigh")
def _(r):
    return [call(np.diag([1.0, 2.0, 4.0])).but(smooth=False)]


@family("linalg.svd")
def _(r):
    return [call(np.diag([4.0, 2.0, 1.0])).but(smooth=False)]


@family("svd")
def _(r):
    return [call(np.diag([4.0, 2.0, 1.0])).but(smooth=False),
            call(matrix(r, 2, 3, 4), compute_uv=False)]


for _name in ("_eigvals", "_eigvalsh", "_svdvals", "_geqrf", "_ldl_solve"):
    family.untested[_name] = "where no derivative is wanted; in test_linalg.py"
