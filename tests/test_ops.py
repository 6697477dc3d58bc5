"""The ops under the names of PyTorch's dispatcher: `torch.ops`."""
import copy

import pytest

import flambeau as torch

aten = torch.ops.aten


def test_overloads_say_who_they_are():
    add = aten.add.Tensor
    assert str(add) == "aten.add.Tensor" and add.name() == "aten::add.Tensor"
    assert repr(add) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert add.overloadpacket is aten.add and add.namespace == "aten"
    assert aten.relu.default.name() == "aten::relu"


def test_overloads_are_one_object_through_copies():
    add = aten.add.Tensor
    assert aten.add.Tensor is add and copy.deepcopy(add) is add
    assert copy.deepcopy(aten.add) is aten.add


def test_packets_list_their_overloads():
    assert {"Tensor", "Scalar", "out"} <= set(aten.add.overloads())
    assert list(aten.add) == aten.add.overloads() and "Tensor" in dir(aten.add)


def test_calls_compute():
    x = torch.tensor([1.0, 2.0])
    assert aten.add.Tensor(x, x, alpha=3).tolist() == [4.0, 8.0]
    assert aten.add(x, 1).tolist() == [2.0, 3.0]
    assert aten.add_.Tensor(x, x) is x and x.tolist() == [2.0, 4.0]


def test_views_are_known_from_the_schema():
    assert aten.view.default.is_view and aten.transpose.int.is_view
    assert not aten.add.Tensor.is_view and not aten.add_.Tensor.is_view


def test_tags_say_what_is_true_of_the_op():
    assert torch.Tag.pointwise in aten.add.Tensor.tags
    assert torch.Tag.nondeterministic_seeded in aten.bernoulli.default.tags
    assert torch.Tag.pointwise not in aten.mm.default.tags


def test_composites_decompose_and_others_do_not():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(aten.matmul.default.decompose(x, x.T), x @ x.T)
    assert aten.mm.default.decompose(x, x.T) is NotImplemented


@pytest.mark.parametrize("find, message", [
    (lambda: aten.no_such_op, "'_OpNamespace' 'aten' object has no attribute 'no_such_op'"),
    (lambda: torch.ops.nobody.op, "'_OpNamespace' 'nobody' object has no attribute 'op'"),
    (lambda: aten.add.Nothing,
     "The underlying op of 'aten.add' has no overload name 'Nothing'")])
def test_unknown_names(find, message):
    with pytest.raises(AttributeError, match=message):
        find()
