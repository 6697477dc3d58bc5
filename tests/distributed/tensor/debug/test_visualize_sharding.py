"""Where pieces are is printed."""
from __future__ import annotations

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.debug import visualize_sharding
from flambeau.distributed.tensor.debug._visualize_sharding import _create_table


@pytest.fixture
def mesh():
    with imagined(4, rank=0) as found:
        yield found


def test_where_pieces_are(mesh, capsys):
    both = init_device_mesh("cpu", (2, 2))
    visualize_sharding(distribute_tensor(torch.ones(4, 8), both, [Shard(0), Shard(1)]))
    visualize_sharding(distribute_tensor(torch.ones(5, 8), both, [Replicate(), Shard(1)]), "title")
    visualize_sharding(distribute_tensor(torch.ones(7), mesh))
    assert capsys.readouterr().out == """\
         Col 0-3    Col 4-7
-------  ---------  ---------
Row 0-1  cpu:0      cpu:1
Row 2-3  cpu:2      cpu:3
title
         Col 0-3    Col 4-7
-------  ---------  ---------
Row 0-4  cpu:0,2    cpu:1,3
         Col 0-0
-------  -----------
Row 0-6  cpu:0,1,2,3
"""
    with pytest.raises(RuntimeError, match="only 1D or 2D DTensor"):
        visualize_sharding(distribute_tensor(torch.ones(4, 1, 1), mesh))


def test_others_print_nothing(capsys):
    with imagined(2, rank=1) as mesh:
        visualize_sharding(distribute_tensor(torch.ones(4), mesh, [Shard(0)], src_data_rank=None))
    with imagined(2, rank=0) as mesh:
        visualize_sharding(distribute_tensor(torch.ones(0, 2), mesh, [Shard(0)]), "title")
    assert capsys.readouterr().out == ""


def test_places_without_a_piece():
    assert _create_table({((0, 0), (0, 0)): [1], ((1, 1), (1, 1)): [10, 2]}, "cpu").split("\n") == [
        "         Col 0-0    Col 1-1", "-------  ---------  ---------",
        "Row 0-0  cpu:1", "Row 1-1             cpu:2,10"]
