"""What rules have in common."""
import pytest
from tensor_cases import P, R, imagined, spec

import flambeau as torch
from flambeau.distributed.tensor import Partial, Shard
from flambeau.distributed.tensor._op_schema import OpSchema
from flambeau.distributed.tensor._ops import utils


@pytest.fixture
def grid():
    with imagined(2, 4) as mesh:
        yield mesh


@pytest.mark.parametrize(("dims", "ndim", "found"), [
    (None, 3, (0, 1, 2)), ([], 2, (0, 1)), (-1, 3, (2,)), ([0, -2], 3, (0, 1)), ((1,), 2, (1,))])
def test_dimensions_from_the_left(dims, ndim, found):
    if dims is not None and dims != []:
        assert tuple(utils.normalize_dims(dims, ndim)) == found
    assert [utils.normalize_dim(d - ndim, ndim) for d in found] == list(found)


@pytest.mark.parametrize(("common", "given", "found"), [
    ((4, 3, 2), (3, 1), [-1, 0, -1]), ((4,), (4,), [0]), ((2, 2), (), [-1, -1])])
def test_broadcasting(common, given, found):
    assert utils.infer_broadcast_dims_map(common, given) == found


def test_placements_of_inputs_that_are_repeated():
    mapping = utils.infer_broadcast_dims_map((4, 3, 2), (3, 1))
    found = utils.map_placements_after_broadcast((Shard(0), Shard(1), R, P), torch.Size([4, 3, 2]),
                                                 mapping)
    assert tuple(found) == (R, Shard(0), R, P)


def test_what_each_process_gets(grid):
    cut = spec(grid, (8, 8), Shard(0), Shard(1))
    for shape, some, even in (((8, 8), True, True), ((3, 5), True, False), ((1, 8), False, False),
                              ((2, 4), True, True)):
        assert utils.is_tensor_shardable(shape, cut) is some
        assert utils.is_tensor_evenly_shardable(shape, cut) is even
    assert utils.is_tensor_evenly_shardable_on_dim((3, 8), cut, 1)
    assert utils.is_tensor_dim_sharded(cut, 0) and not utils.is_tensor_partial(cut)
    assert utils.is_tensor_partial(spec(grid, (8,), P, R))


def test_lists():
    x = [1]
    assert utils.as_list(x) is x and utils.as_list(2) == [2]
    assert utils.prod([2, 3, 4]) == 24 and utils.prod([]) == 1


def test_dimensions_that_come_and_go():
    assert tuple(utils.shift_shard_dims_after_insert([Shard(0), R, Shard(2)], 1)) == (
        Shard(0), R, Shard(3))
    assert tuple(utils.shift_shard_dims_after_remove([Shard(0), P, Shard(2)], 1)) == (
        Shard(0), P, Shard(1))


def test_strategies(grid):
    schema = OpSchema(torch.ops.aten.flip.default, (spec(grid, (8, 8), Shard(1), P), [0]), {})
    assert utils.along(schema, [1, 0]) == [((Shard(0),), (Shard(1),))]
    assert utils.along(schema, [1, None]) == []
    assert utils.along(schema, [0, 1], outputs=2, others=1, partial=True) == [
        ((Shard(1),) * 2, (Shard(1), R)), ((P,) * 2, (P, R))]
    assert utils.except_dims(schema, [-1]) == []
    assert utils.partials([spec(grid, (2,), Partial("max"), P)]) == [P]
    assert utils.cut_dims(schema.specs[0]) == [1]
