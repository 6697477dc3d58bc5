"""Groups that are found by their members and a tag of the user's."""
from __future__ import annotations

from typing import Any

from flambeau.distributed._c10d.groups import new_group_with_tag
from flambeau.distributed._c10d.world import GroupMember, _world, ranks_of, resolve


def find_by_ranks_and_tag(tag: str, ranks: list[int]) -> Any:
    """The group of these members under this tag, if there is one."""
    if tag and not tag.startswith(("ptd:", "user:")):
        tag = f"user:{tag}"
    for group in _world.tags_to_pg.get(tag, ()):
        if sorted(ranks_of(group)) == sorted(ranks):
            return group
    return None


def find_or_create_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> Any:
    """The group of these members under this tag: `ranks` are those of all groups that are cut into
    pieces of `stride`."""
    if len(ranks) % stride:
        raise ValueError(f"Ranks length ({len(ranks)}) must be divisible by stride ({stride})")
    mine = resolve(None).rank()
    pieces = [ranks[i:i + stride] for i in range(0, len(ranks), stride)]
    own = next((p for p in pieces if mine in p), None)
    found = find_by_ranks_and_tag(tag, own or pieces[0])
    if found is not None:
        return found
    if tag == "":
        raise ValueError("Cannot automatically create PG with empty tag")
    made = [new_group_with_tag(piece, pg_tag=tag) for piece in pieces]
    return next((g for g in made if g is not GroupMember.NON_GROUP_MEMBER), made[0])


def tag_of(group: Any) -> str:
    """The tag of a group, empty for those without one of the user's."""
    tag = _world.pg_to_tag[resolve(group)]
    return tag.removeprefix("user:") if tag.startswith("user:") else tag
