import pickle

import pytest

import flambeau
from flambeau import _utils


def test_dense_tensors_in_one_row_and_back():
    tensors = [flambeau.arange(4.0).view(2, 2), flambeau.ones(3)]
    flat = _utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 1, 2, 3, 1, 1, 1]
    views = _utils._unflatten_dense_tensors(flat, tensors)
    assert isinstance(views, tuple) and [v.shape for v in views] == [t.shape for t in tensors]
    flat.zero_()
    assert not views[0].any()


def test_sparse_tensors_in_two_rows_and_back():
    tensors = [flambeau.eye(2).to_sparse(), flambeau.tensor([[0.0, 3.0]]).to_sparse()]
    again = _utils._unflatten_sparse_tensors(_utils._flatten_sparse_tensors(tensors), tensors)
    assert [a.to_dense().tolist() for a in again] == [t.to_dense().tolist() for t in tensors]


def test_tensors_in_groups_of_a_type():
    a, b, c = flambeau.ones(3), flambeau.ones(2).double(), flambeau.zeros(4)
    assert [[x is y for x, y in zip(group, expected)] for group, expected in zip(
        _utils._take_tensors([a, b, c], 16), [[a], [c], [b]])] == [[True]] * 3
    assert [t.dtype for t in _utils._reorder_tensors_as([b, a], [a, b])] == [a.dtype, b.dtype]


def test_numbers_of_devices():
    index = _utils._get_device_index
    assert [index("cuda:1"), index(3), index("cpu", allow_cpu=True), index(None, True)] == [
        1, 3, -1, None]
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        index("cpu")
    with pytest.raises(ValueError, match=r"with a specified index or an integer, but got:cuda"):
        index("cuda")
    with pytest.raises(RuntimeError, match="Device 'no' does not have a corresponding module"):
        _utils._get_device_module("no")


def test_exceptions_travel_as_text():
    try:
        {}["x"]
    except KeyError:
        wrapper = pickle.loads(pickle.dumps(_utils.ExceptionWrapper(where="in a thread")))
    with pytest.raises(KeyError, match=r"(?s)Caught KeyError in a thread\.\nOriginal Traceback"):
        wrapper.reraise()


def test_old_keywords_are_told_apart():
    assert _utils._get_async_or_non_blocking("f", True, {}) is True
    with pytest.warns(UserWarning, match="'async' is deprecated"):
        assert _utils._get_async_or_non_blocking("f", True, {"async": False}) is False
    with pytest.raises(TypeError, match="f\\(\\) got an unexpected keyword argument 'b'"):
        _utils._get_async_or_non_blocking("f", True, {"b": 1})


def test_classes_that_stand_for_missing_ones_refuse():
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class Graph"):
        _utils._dummy_type("Graph")()
