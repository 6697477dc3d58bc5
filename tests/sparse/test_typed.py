"""`torch.sparse.FloatTensor` and its kind."""
import pytest

import flambeau as torch

PLACES = torch.tensor([[0, 2]])


@pytest.fixture
def always_warning():
    """What is said once in a process is said again."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def test_former_types(always_warning):
    kinds = torch.sparse
    x = torch.eye(2).to_sparse()
    assert x.type() == "torch.sparse.FloatTensor"
    assert isinstance(x, kinds.FloatTensor) and not isinstance(x, kinds.DoubleTensor)
    assert not isinstance(torch.eye(2), kinds.FloatTensor)
    assert x.type(kinds.DoubleTensor).dtype is torch.float64
    assert x.type("torch.sparse.HalfTensor").dtype is torch.float16
    with pytest.warns(UserWarning, match=r"SparseTensor\(indices, values, shape, .* deprecated"):
        made = kinds.FloatTensor(torch.tensor([[0, 1], [0, 1]]), torch.tensor([1.0, 2.0]),
                                 torch.Size([2, 2]))
    assert made.to_dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    with pytest.warns(UserWarning, match="is deprecated"):
        assert kinds.LongTensor(2, 3).shape == (2, 3) and kinds.IntTensor().dtype is torch.int32
    with pytest.raises(TypeError, match="only accepts sizes"):
        kinds.FloatTensor([1.0, 2.0])


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
