"""Arguments, storages and first values."""
from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed import utils
from flambeau.nn.parallel import DistributedDataParallel as DDP

Pair = namedtuple("Pair", "a b")


@dataclass
class Data:
    x: object
    y: int = 2


def test_arguments():
    flat, names = utils._pack_kwargs(1, 2, a=3)
    assert (flat, names) == ((1, 2, 3), ("a",))
    assert utils._unpack_kwargs(flat, names) == ((1, 2), {"a": 3})
    with pytest.raises(AssertionError, match=r"too many keys 2 vs. 1"):
        utils._unpack_kwargs((1,), ("a", "b"))
    args, kwargs = utils._cast_forward_inputs(
        torch.float16, torch.ones(1), torch.ones(1, dtype=torch.int64), k=[torch.ones(1)])
    assert [a.dtype for a in args] == [torch.float16, torch.int64]
    assert kwargs["k"][0].dtype is torch.float16
    found = utils._apply_to_tensors(lambda t: t + 1, {
        "a": Pair(torch.zeros(1), 2), "d": Data(torch.zeros(1)), "s": {1}, "t": (torch.ones(1),)})
    assert found["a"].a.item() == found["d"].x.item() == 1 and found["t"][0].item() == 2
    assert isinstance(found["a"], Pair) and found["s"] == {1}
    assert utils._to_kwargs((torch.ones(1), 3), None, torch.device("cpu"), False) == (
        ((torch.ones(1), 3),), ({},))


def test_storages(capsys):
    tensor = torch.ones(3)
    utils._alloc_storage(tensor, torch.Size([3]))
    assert utils._data_ptr_allocated(tensor)
    with pytest.raises(AssertionError, match="should have been resized to be 0 but got 12"):
        utils._alloc_storage(tensor, torch.Size([4]))
    with pytest.raises(AssertionError, match="not the sole occupant"):
        utils._free_storage(torch.ones(6).view(2, 3)[1])
    assert "storage offset: 3" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match="an array of NumPy keeps its memory"):
        utils._free_storage(tensor)


def test_names_and_roots():
    state = {"m.a": 1, "q": 2}
    utils._replace_by_prefix(state, "m.", "n.m.")
    assert state == {"q": 2, "n.m.a": 1}
    with pytest.raises(ValueError, match="must be distinct"):
        utils._replace_by_prefix(state, "n", "n")
    inner = nn.Linear(1, 1)
    outer, other = nn.Sequential(inner), nn.Linear(1, 1)
    assert utils._get_root_modules([inner, outer, other]) == [outer, other]


def first_values(rank):
    tensors = [torch.full((3,), float(rank)), torch.full((2,), rank),
               torch.full((4,), rank + 0.5)]
    utils._sync_params_and_buffers(dist.group.WORLD, tensors, 16, 1)
    assert [t[0].item() for t in tensors] == [1.0, 1, 1.5]
    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    model[0].weight.data.fill_(rank)
    model[1].running_mean.fill_(rank)
    utils._sync_module_states(model, dist.group.WORLD, 100, 0, {"1.running_mean"})
    assert not model[0].weight.any() and model[1].running_mean.item() == rank
    with pytest.raises(RuntimeError, match="appears not to match sizes of the same param"):
        DDP(nn.Linear(2 + rank, 1))
    layer = nn.Embedding(5, 2, sparse=True)
    nn.init.ones_(layer.weight)
    DDP(layer)(torch.tensor([rank, 2])).sum().backward()
    assert layer.weight.grad.to_dense()[:, 0].tolist() == [0.5, 0.5, 1.0, 0.0, 0.0]


def test_first_values(processes):
    processes(first_values)
