"""Steps of all processes, pieces of states, views of files."""
from __future__ import annotations

import io
import os

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint import CheckpointException
from flambeau.distributed.checkpoint.metadata import MetadataIndex
from flambeau.distributed.checkpoint.utils import (
    _api_bc_check,
    _create_file_view,
    _DistWrapper,
    _element_wise_add,
    _element_wise_sub,
    _normalize_device_info,
    find_state_dict_object,
    find_tensor_shard,
)


@pytest.fixture(params=[False, True], ids=["without", "with a group"])
def steps(request):
    from flambeau import distributed as dist
    if request.param:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield _DistWrapper(None, request.param, 0)
    if request.param:
        dist.destroy_process_group()


def fails(*args):
    raise ValueError("bad")


def test_steps(steps):
    assert steps.get_rank() == 0 and steps.get_world_size() == 1 and steps.is_coordinator
    assert steps.reduce_scatter("s", lambda: 2, lambda every: [sum(every) + 1]) == 3
    assert steps.all_reduce("s", lambda: 2, lambda every: sum(every) + 1) == 3
    assert steps.all_gather("s", lambda: 2) == [2] and steps.broadcast("s", lambda: 2) == 2
    assert steps.broadcast_object("x") == "x" and steps.scatter_object(["y"]) == "y"
    assert steps.gather_object(1) == steps.all_gather_object(1) == [1]


@pytest.mark.parametrize("call", [
    lambda s: s.reduce_scatter("s", fails, lambda every: every),
    lambda s: s.reduce_scatter("s", lambda: 1, fails),
    lambda s: s.all_reduce("s", fails, sum), lambda s: s.all_reduce("s", lambda: 1, fails),
    lambda s: s.all_gather("s", fails), lambda s: s.broadcast("s", fails)])
def test_steps_that_fail(steps, call):
    with pytest.raises(CheckpointException, match="ValueError: bad") as error:
        call(steps)
    assert list(error.value.failures) == [0]


def test_what_an_index_names():
    weight = torch.ones(2, 2)
    state = {"w": weight, "x": 3}
    assert find_state_dict_object(state, MetadataIndex("w")) is weight
    assert find_state_dict_object(state, MetadataIndex("w", [0, 0])) is weight
    assert find_state_dict_object(state, MetadataIndex("x")) == 3
    assert find_tensor_shard(weight, MetadataIndex("w", (0, 0))) is weight
    for index, words in ((MetadataIndex("y"), "Could not find FQN: 'y'"),
                         (MetadataIndex("x", [0]), "FQN: 'x' is not a ShardedTensor, can't find"),
                         (MetadataIndex("w", [1, 0]), "FQN: 'w' is not a ShardedTensor")):
        with pytest.raises(ValueError, match=words):
            find_state_dict_object(state, index)


def test_a_part_of_a_file():
    file = io.BytesIO(b"0123456789")
    view = _create_file_view(file, 2, 5)
    assert view.read() == b"23456" and view.tell() == 5 and view.read(1) == b""
    view.seek(1)
    assert view.read(2) == b"34" and view.tell() == 3 and view.read(9) == b"56"
    view.seek(2, os.SEEK_END)
    assert view.read() == b"56"
    view.seek(0)
    room = bytearray(8)
    assert view.readinto(room) == 5 and bytes(room[:5]) == b"23456"
    view.seek(1)
    view.seek(1, os.SEEK_CUR)
    assert view.read(1) == b"4" and view.seekable() and view.readable()


def test_small_ones():
    assert list(_element_wise_add([1, 2], [3, 4])) == [4, 6]
    assert list(_element_wise_sub([1, 2], [3, 5])) == [-2, -3]
    assert _normalize_device_info("cpu", 3) == "cpu"
    assert _normalize_device_info("cuda", 3) == "cuda:3"


def test_arguments_that_had_another_order():
    @_api_bc_check
    def save(state_dict, *, checkpoint_id=None, storage_writer=None):
        return state_dict, checkpoint_id, storage_writer
    with pytest.warns(UserWarning, match="The argument order of save has been changed"):
        assert save(1, 2) == (1, None, 2)
    assert save(1, checkpoint_id=3) == (1, 3, None)
