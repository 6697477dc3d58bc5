"""What a process knows of its groups."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed import distributed_c10d as c10d
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def four():
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_the_default_group(four):
    world = c10d._world
    assert dist.GroupMember.WORLD is dist.group.WORLD is world.default_pg is four
    assert world.pg_map[four][0] == "fake" and isinstance(world.pg_map[four][1], dist.Store)
    assert world.pg_group_ranks[four] == {0: 0, 1: 1, 2: 2, 3: 3}
    assert world.tags_to_pg[f"ptd:{four.group_name}"] == [four] == world.tags_to_pg[""]
    assert c10d._resolve_process_group(four.group_name) is four


def test_a_group_of_some(four):
    some = dist.new_group([3, 2], group_desc="two")
    found = next(info for info in c10d._world.pg_config_info if info["pg_desc"] == "two")
    assert (found["ranks"], found["group_size"], found["pg_name"]) == ([2, 3], 2, some.group_name)
    assert c10d._world.pg_config_info[0]["ranks"] == []         # all
    dist.destroy_process_group(some)
    assert some not in c10d._world.pg_map and some not in c10d._world.pg_names
    with pytest.raises((RuntimeError, ValueError), match="under the name"):
        c10d._resolve_process_group(some.group_name)


def test_nothing_is_left(four):
    dist.new_group([2])
    dist.destroy_process_group()
    world = c10d._world
    assert world.default_pg is None and dist.group.WORLD is None
    assert not world.pg_map and not world.pg_names and not world.pg_group_ranks
    assert not world.pg_backend_config and not world.pg_to_tag
    assert dist.GroupMember.NON_GROUP_MEMBER == -100
