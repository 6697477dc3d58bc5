"""`torch.sparse.FloatTensor` and its kind."""
import pytest

import flambeau as torch

PLACES = torch.tensor([[0, 2]])


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
@pytest.mark.parametrize("name, dtype", [
    ("Float", torch.float32), ("Double", torch.float64), ("Long", torch.int64),
    ("Int", torch.int32), ("Short", torch.int16), ("Byte", torch.uint8), ("Char", torch.int8),
    ("Half", torch.float16), ("BFloat16", torch.bfloat16)])
def test_types(name, dtype):
    kind = getattr(torch.sparse, f"{name}Tensor")
    made = kind(3, 4)
    assert made.shape == (3, 4) and made.dtype is dtype and made._nnz() == 0
    assert isinstance(made, kind) and not isinstance(made.to_dense(), kind)
    assert kind.dtype is dtype and kind.is_sparse and not kind.is_cuda


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
def test_ways_to_make_one():
    kind = torch.sparse.FloatTensor
    assert kind().shape == (0,)
    assert kind(torch.Size([2, 3])).shape == (2, 3)
    assert kind(PLACES, torch.ones(2)).shape == (3,)
    assert kind(PLACES, torch.ones(2), torch.Size([5])).to_dense().tolist() == [1, 0, 1, 0, 0]


def test_refusals():
    with pytest.raises(TypeError, match="only accepts sizes"):
        torch.sparse.FloatTensor([1, 2])
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        torch.sparse.FloatTensor("a", "b")
