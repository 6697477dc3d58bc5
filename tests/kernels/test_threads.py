"""One number of threads for all pools, and forks after they ran."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import flambeau as torch
from flambeau.kernels.linalg import blas
from flambeau.utils.data import DataLoader

controls = blas.controls(blas._MODULES[0])
needs_openblas = pytest.mark.skipif(controls is None, reason="NumPy's BLAS is no OpenBLAS")


@needs_openblas
def test_set_num_threads_governs_numpys_blas():
    before = torch.get_num_threads()
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            assert controls[0]() == n
        with blas._numpy:                       # while small matrices are computed by one
            torch.set_num_threads(1)
            torch.set_num_threads(2)
            assert controls[0]() == 1
        assert controls[0]() == 2
    finally:
        torch.set_num_threads(before)


class Threads:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        return torch.get_num_threads(), controls[0]()


@needs_openblas
def test_workers_of_a_data_loader_have_one_thread():
    for ours, numpys in DataLoader(Threads(), batch_size=None, num_workers=1):
        assert (ours, numpys) == (1, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_threads_ran():
    x = torch.randn(300, 300)
    (x.exp() + x).sum()
    x @ x
    child = os.fork()
    if not child:
        y = torch.randn(300, 300)
        (y.exp() + y @ y).sum()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("shapes", [
    ((300, 70), (70, 200)), ((40, 500), (500, 300)), ((7, 900, 60), (7, 60, 80)),
    ((90, 30, 40), (90, 40, 20)), ((400, 300), (300,))])
@pytest.mark.parametrize("turned", [False, True])
def test_large_products_by_any_number_of_threads(threads, shapes, turned):
    a, b = (torch.randn(*shape, dtype=torch.float64) for shape in shapes)
    if turned:
        a = a.transpose(-1, -2).contiguous().transpose(-1, -2)
        b = b.transpose(-1, -2).contiguous().transpose(-1, -2) if b.ndim > 1 else b
    for n in (1, 2, 3):
        threads(n)
        np.testing.assert_allclose((a @ b).numpy(), np.matmul(a.numpy(), b.numpy()), rtol=1e-11,
                                   atol=1e-11)


@needs_openblas
def test_numpys_blas_has_its_threads_again(threads):
    threads(2)
    torch.randn(300, 300) @ torch.randn(300, 300)
    assert controls[0]() == 2


def test_large_affine_maps_add_their_bias(threads):
    x, w, b = torch.randn(500, 90), torch.randn(130, 90), torch.randn(130)
    want = x.numpy() @ w.numpy().T + b.numpy()
    for n in (1, 2):
        threads(n)
        np.testing.assert_allclose(torch.nn.functional.linear(x, w, b).numpy(), want, rtol=1e-4,
                                   atol=1e-4)


def test_several_threads_of_python_share_the_pool(threads):
    threads(3)
    x = torch.randn(1 << 17)
    want = x.exp().tolist()

    def work(_):
        return all(torch.equal(x.exp(), expected) for _ in range(50))

    expected = torch.tensor(want)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
