"""Embeddings: a table whose rows are cut gives terms."""
import pytest
from tensor_cases import P, R, check, imagined, numbers, put

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard
from flambeau.nn import functional as F


def tables(rank):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    places = torch.tensor([[0, 3], [9, 1], [2, 5], [8, 8]])
    for rows in (10, 11):                                   # 11: pieces of two sizes
        for p, q in ((R, Shard(0)), (R, Shard(1)), (Shard(0), R), (Shard(1), R), (R, R), (R, P)):
            check(F.embedding, [places, numbers(rows, 8)], mesh, [[p], [q]])
    check(lambda i, w: F.embedding(i, w, padding_idx=3), [places, numbers(10, 8)], mesh,
          [[R], [R]])


def test_three_processes(processes):
    processes(tables, size=3)


@pytest.mark.parametrize(("indices", "table", "found"), [
    (R, Shard(1), Shard(2)), (Shard(0), R, Shard(0)), (Shard(1), R, Shard(1)), (R, R, R)])
def test_placements(indices, table, found):
    with imagined(2) as mesh:
        result = F.embedding(put(torch.zeros(4, 2, dtype=torch.long), mesh, indices),
                             put(torch.ones(6, 8), mesh, table))
        assert result.placements == (found,) and result.shape == (4, 2, 8)


def test_each_process_has_the_rows_that_it_knows():
    with imagined(2) as mesh:
        table = put(torch.arange(8.0).view(4, 2), mesh, Shard(0))          # here rows 2 and 3
        found = F.embedding(put(torch.tensor([0, 2, 3]), mesh, R), table)
        assert found.placements[0].is_partial()
        assert found.to_local().tolist() == [[0, 0], [4, 5], [6, 7]]
