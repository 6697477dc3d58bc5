"""Sharing memory with other array libraries."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.int64, torch.complex64,
                                   torch.float16, torch.uint8])
def test_memory_is_shared(dtype):
    x = torch.tensor([1, 2, 3], dtype=dtype)
    y = from_dlpack(to_dlpack(x))
    assert y.dtype == dtype and y.data_ptr() == x.data_ptr()
    y[0] = 7
    assert x[0] == 7


def test_strides_are_kept():
    x = torch.arange(12.0).reshape(3, 4).t()[1:]
    y = from_dlpack(to_dlpack(x))
    assert y.stride() == x.stride() and torch.equal(x, y)


def test_arrays_and_tensors_as_they_are():
    array = np.arange(3.0)
    x = from_dlpack(array)
    x[1] = 9
    assert array[1] == 9 and torch.equal(from_dlpack(x), x)
    assert np.from_dlpack(torch.ones(2)).tolist() == [1.0, 1.0]
    assert torch.ones(1).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


def test_what_cannot_be_exported():
    with pytest.raises((RuntimeError, BufferError), match=r"require gradient|requires_grad"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="conjugate bit"):
        torch.ones(2, dtype=torch.complex64).conj().__dlpack__()


@pytest.mark.parametrize("stream", [None, -1])
def test_streams_of_a_processor(stream):
    assert type(torch.ones(2).__dlpack__(stream=stream)).__name__ == "PyCapsule"


@pytest.mark.parametrize("stream, error, message", [
    (1, AssertionError, "stream should be None on cpu."),
    ("a", TypeError, "stream must be ``int`` or ``none``")])
def test_streams_that_there_are_not(stream, error, message):
    with pytest.raises(error, match=message):
        torch.ones(2).__dlpack__(stream=stream)
