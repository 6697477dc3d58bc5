import re

import numpy as np
import pytest

from flambeau.kernels.linalg import fortran

TYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(params=["of NumPy", "of SciPy", "by ctypes"])
def _each_way(request, monkeypatch):
    """Calls by every way there is, in turn."""
    if request.param == "of SciPy":
        pytest.importorskip("scipy.linalg")
        _forget()
        monkeypatch.setattr(fortran, "_files", list)
    elif request.param == "by ctypes":
        monkeypatch.setattr(fortran, "_native_call", None)
    yield
    _forget()


def _forget():
    fortran.library.cache_clear()
    fortran._routine.cache_clear()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.usefixtures("_each_way")
def test_routines(dtype):
    a = np.array([[[4, 2], [2, 5]], [[9, 3], [3, 2]], [[1, 2], [2, 1]]], dtype)
    info = fortran.integers(3)
    fortran.call_each("potrf", a.dtype, b"L", 2, a, 2, info)
    assert info.tolist() == [0, 0, 2]
    np.testing.assert_allclose(a[:2].real, [[[2, 1], [2, 2]], [[3, 1], [3, 1]]], rtol=1e-6)


@pytest.mark.usefixtures("_each_way")
def test_arguments_that_all_items_share():
    factor, one = np.array([[2.0, 1.0], [0.0, 4.0]]), np.ones(1)     # column by column
    b = np.array([[[2.0, 5.0]], [[4.0, 10.0]]])
    fortran.call_each("trsm", b.dtype, b"L", b"L", b"N", b"N", 2, 1, (one,), (factor,), 2, b, 2)
    assert b.tolist() == [[[1, 1]], [[2, 2]]]


def test_without_any_library_the_extra_is_named(monkeypatch):
    _forget()
    monkeypatch.setattr(fortran, "_files", list)
    monkeypatch.setitem(__import__("sys").modules, "scipy.linalg", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'flambeau[scipy]'")):
        fortran.integers(1)
    _forget()


@pytest.mark.skipif(fortran._native_call is None, reason="without the native extension")
@pytest.mark.parametrize("arguments", [
    (0, True, ()), (1, True, "x"), (1, True, (np.ones(()),)), (1, True, (np.ones(1), np.ones(2))),
    (1, True, (1,) * 25), (1, True, ("L",))])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises((TypeError, ValueError)):
        fortran._native_call(*arguments)
