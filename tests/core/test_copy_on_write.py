"""Lazy clones: the memory is shared until one of the tensors is written to."""
import gc

import pytest

import flambeau as torch
from flambeau.core import copy_on_write
from flambeau.core.copy_on_write import is_shared


def lies_at(x):
    return torch._C._data_address(x)


WRITES = {
    "in place": lambda x: x.add_(1),
    "element by element": lambda x: x.sqrt_(),
    "copy_": lambda x: x.copy_(torch.zeros(4)),
    "fill_": lambda x: x.fill_(3),
    "setitem": lambda x: x.__setitem__(0, 5.0),
    "index_put_": lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(9.0)),
    "out": lambda x: torch.neg(x, out=x),
    "random": lambda x: x.uniform_(),
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "a view": lambda x: x[1:].zero_(),
    "storage": lambda x: x.untyped_storage().fill_(0),
    "numbers of a storage": lambda x: x._typed_storage().__setitem__(1, 7.0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("writes_to_clone", [True, False])
def test_a_write_separates(write, writes_to_clone):
    x = torch.full((4,), 2.0)
    clone = x._lazy_clone()
    assert lies_at(x) == lies_at(clone) and is_shared(x._array) and is_shared(clone._array)
    written, other = (clone, x) if writes_to_clone else (x, clone)
    expected = torch.full((4,), 2.0)
    torch.manual_seed(0)
    WRITES[write](expected)
    torch.manual_seed(0)
    WRITES[write](written)
    assert written.tolist() == expected.tolist() and other.tolist() == [2.0] * 4
    assert not is_shared(written._array) and lies_at(written) != lies_at(other)
    place = lies_at(other)
    other.add_(1)                                   # the last one keeps the memory
    assert lies_at(other) == place and other.tolist() == [3.0] * 4


def test_storages_keep_their_address_and_views_follow():
    x = torch.arange(6.0)
    view, address = x[2:], torch._C._storage_address(x)
    clone = x._lazy_clone()
    later = x.view(2, 3)
    assert torch._C._storage_address(x) == address != torch._C._storage_address(clone)
    view.mul_(10)
    assert x.tolist() == later.flatten().tolist() == [0, 1, 20, 30, 40, 50]
    assert clone.tolist() == [0, 1, 2, 3, 4, 5]
    for each in (x, view, later):
        assert torch._C._storage_address(each) == address


def test_reading_does_not_separate():
    x = torch.ones(3)
    clone = x._lazy_clone()
    assert (x + clone).tolist() == [2, 2, 2] and float(x.sum()) == 3
    assert is_shared(x._array) and is_shared(clone._array)


def test_clones_of_clones():
    x = torch.zeros(3)
    y = x._lazy_clone()
    z = y._lazy_clone()
    y.add_(1)
    z.add_(2)
    assert [t.tolist() for t in (x, y, z)] == [[0] * 3, [1] * 3, [2] * 3]
    assert is_shared(x._array)
    x.add_(3)
    assert x.tolist() == [3] * 3 and not is_shared(x._array)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_optimizers_leave_clones_alone(optimizer):
    p = torch.ones(3, requires_grad=True)
    before, p.grad = p.detach()._lazy_clone(), torch.ones(3)
    optimizer([p], lr=0.1).step()
    assert before.tolist() == [1] * 3 and p.tolist() != [1] * 3


def test_running_statistics_leave_clones_alone():
    norm = torch.nn.BatchNorm1d(2)
    before = norm.running_mean._lazy_clone()
    norm(torch.rand(4, 2) + 1)
    assert before.tolist() == [0, 0] and norm.running_mean.tolist() != [0, 0]


def test_gradients_pass_through():
    x = torch.ones(3, requires_grad=True)
    (x._lazy_clone() * 2).sum().backward()
    assert x.grad.tolist() == [2] * 3


def test_nothing_is_kept():
    gc.collect()
    before = len(copy_on_write._sharings)
    x = torch.ones(3)
    y = x._lazy_clone()
    x.add_(1)
    del x, y
    gc.collect()
    assert len(copy_on_write._sharings) == before


def test_writing_in_a_parallel_loop_is_refused():
    x = torch.ones(2)
    torch._test_parallel_materialize(x, 4)
    with pytest.raises(RuntimeError, match="Materializing a storage"):
        torch._test_parallel_materialize(x._lazy_clone(), 4)
    assert torch._test_parallel_materialize(x, 1, True) is not None
