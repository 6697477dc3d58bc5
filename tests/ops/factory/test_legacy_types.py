"""The historical constructors: sizes or data, and types by name."""
import numpy as np
import pytest

import flambeau as torch


def test_sizes_or_data():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([2, 3]).tolist() == [2.0, 3.0]
    assert torch.Tensor().shape == (0,) and torch.Tensor(torch.Size((2,))).shape == (2,)
    assert torch.FloatTensor([1]).dtype is torch.float32
    assert torch.LongTensor([1.0]).dtype is torch.int64 and torch.BoolTensor(2).dtype is torch.bool


def test_types_by_name():
    x = torch.ones(2)
    assert x.type() == "torch.FloatTensor" and x.type("torch.DoubleTensor").dtype is torch.float64
    assert x.type(torch.int32).type() == "torch.IntTensor" and x.type(x.type()) is x
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.DoubleTensor)


def test_refusals():
    with pytest.raises(TypeError):
        torch.Tensor("a")
    with pytest.raises((TypeError, ValueError), match="type"):
        torch.ones(1).type("torch.NoTensor")


def test_old_types_show_what_tensors_have():
    assert torch.FloatTensor.add is torch.Tensor.add
    assert set(dir(torch.Tensor)) <= set(dir(torch.LongTensor))
    with pytest.raises(AttributeError):
        torch.FloatTensor.no_such_name


def test_classes_that_name_no_type_of_numbers():
    for given, shown in ((np.float64, "numpy.float64"), (int, "int"), (type("Own", (), {}), "Own")):
        with pytest.raises(ValueError, match=f"^invalid type: '{shown}'$"):
            torch.ones(1).type(given)
    for given in (torch.cuda.FloatTensor, "torch.cuda.FloatTensor", "torch.cuda.sparse.HalfTensor"):
        with pytest.raises(RuntimeError, match="Cannot initialize CUDA without ATen_cuda library"):
            torch.ones(1).type(given)
