"""What checkpoints and libraries take from `torch._tensor`."""
import pytest

import flambeau as torch
from flambeau import _tensor


class Marked(torch.Tensor):
    """A subclass whose attributes travel."""


def test_tensors_in_tuples_and_lists_become_ones_of_the_subclass():
    x = torch.ones(2)
    pair = _tensor._convert((x, [x, 3]), Marked)
    assert type(pair) is tuple and type(pair[0]) is Marked
    assert type(pair[1]) is list and type(pair[1][0]) is Marked and pair[1][1] == 3
    assert pair[0].data_ptr() == x.data_ptr()
    assert _tensor._convert(pair[0], Marked) is pair[0]
    assert _tensor._convert(x, torch.Tensor) is x


@pytest.mark.parametrize("rebuild", ["_rebuild_from_type", "_rebuild_from_type_v2"])
def test_rebuilt_tensors_have_their_type_and_attributes(rebuild):
    state = {"label": "weights"}
    out = getattr(_tensor, rebuild)(torch.ones, Marked, (2,), state)
    assert type(out) is Marked and out.label == "weights" and out.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype, text", [("float32", "<f4"), ("int64", "<i8"), ("bool", "|b1"),
                                         ("complex64", "<c8"), ("uint8", "|u1")])
def test_dtypes_as_the_array_interface_writes_them(dtype, text):
    assert _tensor._dtype_to_typestr(getattr(torch, dtype)) == text


def test_tensor_is_the_public_one():
    assert _tensor.Tensor is torch.Tensor
    assert not _tensor.has_torch_function_unary(torch.ones(1))
