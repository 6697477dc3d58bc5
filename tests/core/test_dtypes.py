"""Element types are single objects, one for each type of NumPy's."""
import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import flambeau
from flambeau.core import dtypes

NUMPY_TYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
               "float16", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpys_types_go_both_ways(name):
    d = dtypes.from_numpy_dtype(np.dtype(name))
    assert d.numpy == np.dtype(name) and d is getattr(flambeau, name)
    assert dtypes.from_numpy_dtype(np.dtype(name).newbyteorder()) is d
    assert d.itemsize == np.dtype(name).itemsize
    assert d.is_complex == (d.kind == "c") and d.is_floating_point == (d.kind == "f")


def test_types_are_single():
    for d in (flambeau.float32, flambeau.bfloat16, flambeau.int4):
        assert copy.copy(d) is copy.deepcopy(d) is pickle.loads(pickle.dumps(d)) is d


def test_types_that_pytorch_lacks_are_refused():
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.str_"):
        dtypes.from_numpy_dtype(np.dtype("U3"))


def test_real_and_complex_types_belong_together():
    for real, made in ((flambeau.float32, flambeau.complex64),
                       (flambeau.float64, flambeau.complex128)):
        assert real.to_complex() is made and made.to_real() is real
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Int"):
        flambeau.int32.to_complex()


def test_the_default_type():
    assert dtypes.default_float() == np.float32
    flambeau.set_default_dtype(flambeau.float64)
    try:
        assert flambeau.tensor(1.0).dtype is flambeau.float64
        assert dtypes.default_complex() == np.complex128
    finally:
        flambeau.set_default_dtype(flambeau.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        flambeau.set_default_dtype(flambeau.int64)


def test_pythons_types_name_element_types():
    assert [dtypes.as_numpy_dtype(t) for t in (float, int, bool, complex, None)] == [
        np.float64, np.int64, np.bool_, np.complex128, None]


def test_half_complex_numbers_are_floating_from_the_first_one_on():
    """Arrays of the type come from kernels, and not only by its name."""
    program = """if True:
        import flambeau
        z = flambeau.view_as_complex(flambeau.ones(2, 2).half())
        try:
            flambeau.fft.fft(z)
        except RuntimeError as error:
            print(error)
    """
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "MKL FFT doesn't support tensors of type: Half\n", said.stderr


@pytest.mark.parametrize("name, short", [
    ("bool", "b8"), ("uint8", "u8"), ("int64", "i64"), ("bfloat16", "bf16"), ("complex64", "c64"),
    ("float8_e4m3fn", "f8e4m3fn"), ("float4_e2m1fn_x2", "f4e2m1fnx2"), ("bits1x8", "b1x8"),
    ("bits16", "b16x1"), ("int4", "int4"), ("quint8", "quint8")])
def test_short_names(name, short):
    assert getattr(flambeau, name).abbr == short
