"""Groups by their members and a tag."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed import distributed_c10d as c10d
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def four():
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield
    dist.destroy_process_group()


def test_a_tag_and_members_name_one_group(four):
    made = c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 1, 2, 3], 2)
    assert dist.get_process_group_ranks(made) == [0, 1]
    assert c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 1, 2, 3], 2) is made
    assert c10d._find_pg_by_ranks_and_tag("mine", [0, 1]) is made
    assert c10d._find_pg_by_ranks_and_tag("mine", [0, 2]) is None
    assert c10d._find_pg_by_ranks_and_tag("other", [0, 1]) is None
    assert c10d._get_group_tag(made) == "mine"


def test_groups_without_a_tag_are_found_but_not_made(four):
    world = dist.group.WORLD
    assert c10d._find_pg_by_ranks_and_tag("", [0, 1, 2, 3]) is world
    assert c10d._get_group_tag(world) == f"ptd:{world.group_name}"
    plain = dist.new_group([1, 2])
    assert c10d._find_or_create_pg_by_ranks_and_tag("", [1, 2], 2) is plain
    with pytest.raises(ValueError, match="Cannot automatically create PG with empty tag"):
        c10d._find_or_create_pg_by_ranks_and_tag("", [1, 3], 2)
    with pytest.raises(ValueError, match=r"Ranks length \(3\) must be divisible by stride \(2\)"):
        c10d._find_or_create_pg_by_ranks_and_tag("x", [0, 1, 2], 2)
