"""Empty matrices of types that LAPACK does not know: results where PyTorch asks no kernel."""
import pytest

import flambeau as torch
from flambeau import linalg

LOW = [torch.float16, torch.bfloat16, torch.complex32, torch.float8_e4m3fn]
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")


def pivots(A):
    return torch.ones(A.shape[:-1], dtype=torch.int32)


OF_LOW = {
    "solve": lambda A, B: linalg.solve(A, B), "solve_ex": lambda A, B: linalg.solve_ex(A, B)[0],
    "solve_right": lambda A, B: linalg.solve(A, B.mT, left=False).mT,
    "cholesky": lambda A, B: linalg.cholesky(A) @ B if A.dtype != LOW[3] else B,
    "lu": lambda A, B: linalg.lu(A)[2] @ B if A.dtype != LOW[3] else B,
    "lu_solve": lambda A, B: linalg.lu_solve(A, pivots(A), B),
    "ldl_solve": lambda A, B: linalg.ldl_solve(A, pivots(A), B),
}


@pytest.mark.parametrize("name", OF_LOW)
@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
def test_solutions_of_nothing(name, dtype, shape):
    A = torch.empty(shape, dtype=dtype)
    B = torch.empty((*shape[:-1], 3), dtype=dtype)
    found = OF_LOW[name](A, B)
    assert found.dtype is dtype and found.shape == B.shape


@pytest.mark.parametrize("dtype", LOW)
def test_decompositions_of_nothing(dtype):
    A, tall = torch.empty(0, 2, 2, dtype=dtype), torch.empty(3, 0, dtype=dtype)
    real = torch.float16 if dtype is torch.complex32 else dtype
    values, vectors = linalg.eigh(A)
    assert (values.dtype, vectors.dtype, vectors.stride()) == (real, dtype, (4, 1, 2))
    U, S, Vh = linalg.svd(tall, full_matrices=False)
    assert [x.dtype for x in (U, S, Vh)] == [dtype, real, dtype] and U.stride() == (1, 3)
    assert linalg.svdvals(tall).dtype is linalg.eigvalsh(A).dtype is linalg.cond(tall).dtype is real
    LU, places = linalg.lu_factor(tall)
    assert LU.stride() == (1, 3) and places.dtype is torch.int32
    assert linalg.ldl_factor(A).LD.stride() == (4, 1, 2)
    assert linalg.cholesky(A).stride() == linalg.cholesky_ex(A).L.stride() == (4, 1, 2)
    if dtype is not torch.float8_e4m3fn:
        assert linalg.det(A[0:0, :0, :0]).dtype is dtype
        assert linalg.det(torch.empty(0, 0, dtype=dtype)).to(torch.complex64) == 1


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("call, message", [
    (linalg.inv, "Low precision dtypes not supported"), (linalg.qr, '"geqrf_cpu" not implemented'),
    (linalg.eig, 'linalg_eig_out_cpu" not implemented|Unknown Complex ScalarType'),
    (linalg.slogdet, "Low precision dtypes not supported"),
    (linalg.matrix_rank, "handle types other than float and double")])
def test_what_looks_at_the_type_alone(call, message, dtype):
    with pytest.raises(RuntimeError, match=message):
        call(torch.empty(0, 0, dtype=dtype))


@pytest.mark.parametrize("dtype", [*LOW, torch.bool, torch.int64])
@pytest.mark.parametrize("a, b", [((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 0, 0), (2, 0, 0)),
                                  ((0, 2), (2,)), ((2, 0), (0,))])
def test_products_of_nothing(a, b, dtype):
    a, b = (torch.empty(shape, dtype=dtype) for shape in (a, b))
    found = a @ b
    assert found.dtype is dtype and found.shape == (a.float() @ b.float()).shape
    assert not found.to(torch.complex64).any()


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex32, torch.float8_e4m3fn])
def test_vectors_are_refused_without_elements_too(dtype):
    x = torch.empty(0, dtype=dtype)
    with pytest.raises(NotImplementedError, match='"dot" not implemented'):
        x @ x


def test_empty_pseudo_inverses_are_not_asked_to_be_square():
    assert linalg.pinv(torch.empty(0, 3), hermitian=True).shape == (3, 0)


def test_condition_numbers_look_for_a_square_before_they_look_at_the_type():
    with pytest.raises(RuntimeError, match=r"linalg\.cond\(ord=1\): A must be batches of square"):
        linalg.cond(torch.ones(2, 3, dtype=torch.int64), 1)
    with pytest.raises(RuntimeError, match=r"linalg\.inv: Expected a floating point or complex"):
        linalg.cond(torch.ones(2, 2, dtype=torch.int64), 1)
    assert linalg.cond(torch.empty(2, 0, 0, dtype=torch.bool)).tolist() == [False, False]


def test_lobpcg_of_what_is_not_square():
    with pytest.raises(AssertionError, match="A must be square, got shape"):
        torch.lobpcg(torch.ones(9, 3))
