"""Work that one process, or each, does and all know the result of: also that it has failed.

    value = broadcast(read_configuration, rank=0)       # raises everywhere if it raises there
"""
from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import flambeau
import flambeau.distributed as dist

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass
class SyncPayload(Generic[T]):
    """The result of a step, or what it has failed with."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def _done(data_or_fn: Any, stage_name: str | None) -> SyncPayload[Any]:
    """A value, or what a function gives, as far as it goes well."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, True, data_or_fn)
    try:
        return SyncPayload(stage_name, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(data_or_fn: T | Callable[[], T], *, success: bool = True,
              stage_name: str | None = None, rank: int = 0, pg: dist.ProcessGroup | None = None
              ) -> T:
    """The value of process `rank` of the group, or what the function gives that it alone runs.
    Where that raises, or `success` is false there, all processes raise."""
    if not success:
        assert data_or_fn is None, "Data or Function is expected to be None if not successful"
    here = pg is None or pg.rank() == rank
    result = _done(data_or_fn if here or not callable(data_or_fn) else None, stage_name)
    result.success = result.success and success
    if pg is not None:
        parts = [result]
        dist.broadcast_object_list(parts, group=pg, group_src=rank)
        result = parts[0]
    if not result.success:
        about = f"Rank {rank} failed"
        if stage_name is not None:
            about += f": stage {stage_name}"
        if result.exception is not None:
            about += f": exception {result.exception}"
        raise RuntimeError(about) from result.exception
    return cast(T, result.payload)


def all_gather(data_or_fn: T | Callable[[], T], stage_name: str | None = None,
               pg: dist.ProcessGroup | None = None) -> list[T]:
    """The values of all processes, or what the function gives in each. If it raises in one, all
    raise."""
    mine = _done(data_or_fn, stage_name)
    if pg is None:
        if not mine.success:
            raise RuntimeError(f"all_gather failed with exception {mine.exception}"
                               ) from mine.exception
        return [mine.payload]
    found: list[Any] = [None] * dist.get_world_size(pg)
    all_gather_object_enforce_type(pg, found, mine)
    failed = {rank: part.exception for rank, part in enumerate(found) if not part.success}
    if failed:
        where = "" if stage_name is None else f" on stage {stage_name}"
        raise RuntimeError(f"all_gather failed{where} with exception on ranks "
                           + ", ".join(f"{rank}: {error!r}" for rank, error in failed.items())
                           ) from next(iter(failed.values()))
    return [part.payload for part in found]


def all_gather_object_enforce_type(
        pg: dist.ProcessGroup, object_list: list[Any], obj: Any,
        type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y)) -> None:
    """`all_gather_object` of objects of one type: others raise."""
    dist.all_gather_object(object_list, obj, group=pg)
    first = object_list[0]
    for i, other in enumerate(object_list[1:], 1):
        if not type_checker(first, other):
            raise TypeError(f"Object type at index {i} is {type(other)}, while first object type "
                            f"is {type(first)}")


# ---- are the random numbers the same everywhere? ------------------------------------------------

def _summarize_ranks(ranks: Iterable[int]) -> str:
    """Ranks as ranges `first:end` and `first:end:step`.

    >>> _summarize_ranks([0, 1, 2, 4, 6, 8])
    '0:3,4:10:2'
    """
    numbers = sorted(ranks)
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = _end_of_run(numbers, at)
        step = numbers[at + 1] - numbers[at] if end - at > 1 else 1
        parts.append(str(numbers[at]) if end - at == 1 else
                     f"{numbers[at]}:{numbers[end - 1] + step}" + f":{step}" * (step > 1))
        at = end
    return ",".join(parts)


def _end_of_run(numbers: list[int], at: int) -> int:
    """Where the numbers that begin at `at` cease to be equally far apart."""
    end = at + 1
    while end < len(numbers) and numbers[end] - numbers[end - 1] == numbers[at + 1] - numbers[at]:
        end += 1
    return end


def _check_cpu_rng_sync(generator: flambeau.Generator, group: dist.ProcessGroup
                        ) -> tuple[dict[Any, set[int]], str]:
    """The hashes of all processes' states, and who has which."""
    state = generator.get_state()
    weight = flambeau.arange(1, state.numel() + 1)
    mine = int((state.to(flambeau.int64) * weight).sum() % (2 ** 61 - 1))
    return _who_has(mine, group), "Generator state hash"


def _check_philox_rng_sync(generator: flambeau.Generator, group: dist.ProcessGroup
                           ) -> tuple[dict[Any, set[int]], str]:
    """The seeds and offsets of all processes' counting generators, and who has which."""
    seed, offset = generator.get_state()[:16].view(flambeau.int64).tolist()
    return _who_has((seed, offset), group), "(Seed, Offset)"


def _who_has(value: Any, group: dist.ProcessGroup) -> dict[Any, set[int]]:
    found: dict[Any, set[int]] = defaultdict(set)
    for rank, other in enumerate(all_gather(value, pg=group)):
        found[other].add(rank)
    return found


def _check_rng_sync_internal(generator: flambeau.Generator, group: dist.ProcessGroup
                             ) -> tuple[dict[Any, set[int]], str]:
    if generator.device.type == "cpu":
        return _check_cpu_rng_sync(generator, group)
    raise NotImplementedError(f"Unsupported generator device: {generator.device.type}")


def _desync_table_str(tag: str, value_ranks: dict[Any, set[int]]) -> str:
    rows = [["Ranks", f"{tag} values"],
            *([_summarize_ranks(ranks), str(value)] for value, ranks in value_ranks.items())]
    return "\n".join(map(str, rows))


def _check_rng_sync(generator: flambeau.Generator, group: dist.ProcessGroup) -> str | None:
    """None if a generator is in the same state in all processes; otherwise who has which, which
    is logged too."""
    found, tag = _check_rng_sync_internal(generator, group)
    if len(found) == 1:
        return None
    message = f"Generator desync detected:\n{_desync_table_str(tag, found)}"
    logger.error(message)
    return message
