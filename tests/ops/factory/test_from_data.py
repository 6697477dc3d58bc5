"""Tensors made of data: their type, their memory, and what is no data."""
import array
import warnings

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("data,dtype,shape", [
    (1, torch.int64, ()), (1.5, torch.float32, ()), (True, torch.bool, ()),
    (1j, torch.complex64, ()), ([], torch.float32, (0,)), ([[1, 2], [3, 4]], torch.int64, (2, 2)),
    ([1, 2.0], torch.float32, (2,)), ([True, 2], torch.int64, (2,)), ([1, 1j], torch.complex64,
                                                                       (2,)),
    (np.ones(2, np.float64), torch.float64, (2,)), ([np.float32(1)], torch.float32, (1,)),
    ([torch.tensor(1), 2], torch.int64, (2,)), (range(3), torch.int64, (3,))])
def test_types_of_data(data, dtype, shape):
    made = torch.tensor(data)
    assert made.dtype is dtype and made.shape == shape


@pytest.mark.parametrize("data,error,said", [
    ([[1], [2, 3]], ValueError, "expected sequence of length 1 at dim 1"),
    (["a"], (TypeError, ValueError), "too many dimensions 'str'|str"), (None, RuntimeError,
                                                                       "Could not infer dtype"),
    ({}, RuntimeError, "Could not infer dtype of dict")])
def test_what_is_no_data(data, error, said):
    with pytest.raises(error, match=said):
        torch.tensor(data)


def test_who_shares_memory():
    a = np.zeros(2, np.float32)
    shared, copied = torch.from_numpy(a), torch.tensor(a)
    as_tensor, viewed = torch.as_tensor(a), torch.asarray(a)
    a[0] = 1
    assert shared[0] == as_tensor[0] == viewed[0] == 1 and copied[0] == 0
    x = torch.ones(2)
    assert torch.as_tensor(x) is x and torch.asarray(x, copy=True).data_ptr() != x.data_ptr()


def test_buffers():
    data = array.array("i", [1, 2, 3])
    found = torch.frombuffer(data, dtype=torch.int32, offset=4)
    data[1] = 7
    assert found.tolist() == [7, 3]
    with pytest.raises(ValueError, match="offset"):
        torch.frombuffer(data, dtype=torch.int32, offset=100)


def test_capsules_of_other_libraries():
    a = np.arange(3.0)
    x = torch.from_dlpack(a)
    a[0] = 5
    assert x.tolist() == [5.0, 1.0, 2.0]
    assert np.shares_memory(np.from_dlpack(x), a)


def test_a_copy_of_a_tensor_is_warned_of():
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        torch.tensor(torch.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.as_tensor(torch.ones(1))


def test_capsules_of_tensors():
    x = torch.ones(4, dtype=torch.bfloat16)
    y = torch.from_dlpack(x[1:])
    y[0] = 5
    assert x.tolist() == [1, 5, 1, 1] and y._base is None
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    for wrong, error, said in (
            (torch.ones(2).to_sparse(), BufferError, "layout other than torch.strided"),
            (torch.ones(2, device="meta"), ValueError, "Unknown device type meta"),
            (torch.ones(2, requires_grad=True), BufferError, "that require gradient")):
        with pytest.raises(error, match=said):
            torch.from_dlpack(wrong)
    capsule = torch.ones(2).__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="capsules can be consumed only once"):
        torch.from_dlpack(capsule)
