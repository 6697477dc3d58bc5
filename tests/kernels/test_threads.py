"""One number of threads for all pools, and forks after they ran."""

import os

import pytest

import flambeau as torch
from flambeau.kernels import blas
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
