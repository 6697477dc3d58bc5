"""Steps that processes take together, pieces of states, and views of files."""
from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor
from flambeau.distributed.checkpoint.api import (
    WRAPPED_EXCEPTION,
    CheckpointException,
    _is_wrapped_exception,
    _wrap_exception,
)
from flambeau.distributed.checkpoint.metadata import MetadataIndex

__all__ = ["find_state_dict_object", "find_tensor_shard"]

T = TypeVar("T")
R = TypeVar("R")


# ---- steps --------------------------------------------------------------------------------------

def _get_failure_dict(results: list[Any]) -> dict[int, WRAPPED_EXCEPTION]:
    return cast(dict[int, WRAPPED_EXCEPTION],
                {i: result for i, result in enumerate(results) if _is_wrapped_exception(result)})


def _all_gather_keys(local_dict: dict[str, Any], group: Any = None) -> set[str]:
    """The keys of all processes' dicts."""
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, list(local_dict.keys()), group=group)
    return set(itertools.chain.from_iterable(found))


def _assert_same_keys(state_dict: dict[str, Any], process_group: Any = None) -> None:
    """Raise unless all processes' dicts have the same keys."""
    if dist.get_world_size(process_group) == 1:
        return
    every, mine = _all_gather_keys(state_dict, process_group), set(state_dict.keys())
    if every != mine:
        raise AssertionError(f"{len(every - mine)} keys on other ranks missing from "
                             f"{dist.get_rank(process_group)}: {sorted(every - mine)}")


def _caught(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, or what it raises."""
    try:
        return function(*args)
    except BaseException as error:
        return _wrap_exception(error)


class _DistWrapper:
    """Steps of all processes of a group: what one raises, `CheckpointException` says to all."""

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int):
        self.group, self.use_dist = group, use_dist
        self.coordinator_rank = coordinator_rank
        if use_dist:
            self.global_coordinator_rank = coordinator_rank if group is None \
                else dist.get_global_rank(group, coordinator_rank)
            self.rank = dist.get_rank(group)
            self.is_coordinator = self.rank == coordinator_rank
        else:
            self.global_coordinator_rank, self.rank, self.is_coordinator = coordinator_rank, 0, True

    def get_rank(self) -> int:
        """The rank of this process."""
        return self.rank

    def get_world_size(self) -> int:
        """The number of processes."""
        return dist.get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object: Any) -> Any:
        """The object of the coordinator."""
        found = [object]
        if self.use_dist:
            dist.broadcast_object_list(found, group=self.group, src=self.global_coordinator_rank)
        return found[0]

    def gather_object(self, object: Any) -> list[Any] | None:
        """The objects of all, at the coordinator."""
        if not self.use_dist:
            return [object]
        found: list[Any] | None = [None] * self.get_world_size() if self.is_coordinator else None
        dist.gather_object(object, found, dst=self.global_coordinator_rank, group=self.group)
        return found

    def all_gather_object(self, object: Any) -> list[Any]:
        """The objects of all."""
        if not self.use_dist:
            return [object]
        found: list[Any] = [None] * self.get_world_size()
        dist.all_gather_object(found, object, group=self.group)
        return found

    def scatter_object(self, object_list: list[Any] | None) -> Any:
        """This process's entry of the coordinator's list."""
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        found = [None]
        dist.scatter_object_list(found, object_list if self.is_coordinator else None,
                                 src=self.global_coordinator_rank, group=self.group)
        return found[0]

    def _at_coordinator(self, step: str, mine: Any, reduce_fun: Callable[[list[Any]], Any]) -> Any:
        """What the coordinator makes of all processes' values; at the others None."""
        every = self.gather_object(mine)
        if not self.is_coordinator:
            return None
        failures = _get_failure_dict(every or [])
        if failures:
            return CheckpointException(step, failures)
        result = _caught(reduce_fun, every)
        if _is_wrapped_exception(result):
            return CheckpointException(step, {self.rank: result})
        return result

    def reduce_scatter(self, step: str, map_fun: Callable[[], Any],
                       reduce_fun: Callable[[list[Any]], list[Any]]) -> Any:
        """Each computes a value; of all, the coordinator makes one for each."""
        results = self._at_coordinator(step, _caught(map_fun), reduce_fun)
        if isinstance(results, CheckpointException):
            results = [results] * self.get_world_size()
        return _raised(self.scatter_object(results))

    def all_reduce(self, step: str, map_fun: Callable[[], Any],
                   reduce_fun: Callable[[list[Any]], Any]) -> Any:
        """Each computes a value; of all, the coordinator makes one for everybody."""
        return _raised(self.broadcast_object(
            self._at_coordinator(step, _caught(map_fun), reduce_fun)))

    def all_gather(self, step: str, map_fun: Callable[[], Any]) -> list[Any]:
        """Each computes a value; everybody gets all."""
        every = self.all_gather_object(_caught(map_fun))
        failures = _get_failure_dict(every)
        if failures:
            raise CheckpointException(step, failures)
        return every

    def broadcast(self, step: str, map_fun: Callable[[], Any]) -> Any:
        """The coordinator computes a value for everybody."""
        result: Any = None
        if self.is_coordinator:
            result = _caught(map_fun)
            if _is_wrapped_exception(result):
                result = CheckpointException(step, {self.rank: result})
        return _raised(self.broadcast_object(result))

    def barrier(self) -> None:
        """Wait for all."""
        if self.use_dist:
            dist.barrier(group=self.group)


def _raised(result: Any) -> Any:
    if isinstance(result, CheckpointException):
        raise result
    return result


# ---- pieces -------------------------------------------------------------------------------------

def _find_shard(tensor: ShardedTensor, index: MetadataIndex) -> Shard:
    """The piece of a sharded tensor that an index names."""
    if index.offset is None:
        raise ValueError(f"Cannot lookup {index.fqn} since its a ShardedTensor and no offset was "
                         "provided")
    shards = tensor.local_shards()
    if index.index is not None and len(shards) > index.index and flambeau.Size(
            shards[index.index].metadata.shard_offsets) == index.offset:
        return shards[index.index]
    for shard in shards:
        if flambeau.Size(shard.metadata.shard_offsets) == index.offset:
            return shard
    raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """The piece that this process has of a tensor; a plain one is a single piece."""
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)
    if isinstance(tensor, ShardedTensor):
        return _find_shard(tensor, index).tensor
    if index.offset is not None:
        if index.offset == flambeau.Size([0] * len(tensor.size())):
            return tensor
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: "
                         f"'{index.offset}'")
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """The value, or the piece of a tensor, that an index names."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: "
                         f"'{index.offset}'")
    return found


def _element_wise_add(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [i + j for i, j in zip(a, b)]


def _element_wise_sub(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [i - j for i, j in zip(a, b)]


def _normalize_device_info(device_type: str, device_id: int) -> str:
    return "cpu" if device_type == "cpu" else f"{device_type}:{device_id}"


# ---- files --------------------------------------------------------------------------------------

class _ReaderView(io.IOBase):
    """A part of a file, as a file."""

    def __init__(self, base_stream: io.IOBase, offset: int, len: int):
        super().__init__()
        self.offset, self.len = offset, len
        self.base_stream = base_stream
        self.seek(0)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_SET:
            offset = self.offset + offset
        elif whence == os.SEEK_END:
            whence, offset = os.SEEK_SET, (self.offset + self.len) - offset
        return self.base_stream.seek(offset, whence)

    def tell(self) -> int:
        return self.base_stream.tell() - self.offset

    def readable(self) -> bool:
        return self.base_stream.readable()

    def seekable(self) -> bool:
        return self.base_stream.seekable()

    def readinto(self, b: Any) -> int:
        rest = self.len - self.tell()
        # a slice of a bytearray would be a copy
        return self.base_stream.readinto(memoryview(b)[:rest])  # type: ignore

    def read(self, size: int = -1) -> bytes:
        rest = self.len - self.tell()
        return self.base_stream.read(rest if size == -1 or size > rest else size)


def _create_file_view(file: io.IOBase, offset: int, length: int) -> io.IOBase:
    return _ReaderView(file, offset, length)


ENABLE_PROFILE = False


@contextlib.contextmanager
def _profile() -> Iterator[None]:
    """Print a profile of what is inside, if `ENABLE_PROFILE` says so."""
    if not ENABLE_PROFILE or (dist.is_initialized() and dist.get_rank() != 0):
        yield
        return
    import cProfile
    import pstats
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("time").print_stats(10)


def _api_bc_check(func: Callable[..., T]) -> Callable[..., T]:
    """Let options of `save` and `load` be given by position, as they once could be."""
    @functools.wraps(func)
    def inner(*args: Any, **kwargs: Any) -> T:
        if len(args) == 2:
            warnings.warn(f"The argument order of {func.__name__} has been changed. Please check "
                          "the document to avoid future breakages.", stacklevel=2)
            signature = inspect.signature(func)
            names = [p.name for p in signature.parameters.values()
                     if p.kind is inspect.Parameter.KEYWORD_ONLY]
            name = "storage_writer" if "storage_writer" in names else "storage_reader"
            return func(args[0], **{name: args[1], **kwargs})
        return func(*args, **kwargs)
    return inner


def tell_more(method: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call a method of a storage; one without `**kwargs` knows nothing of `more`."""
    return method(*args, **more) if "kwargs" in inspect.signature(method).parameters \
        else method(*args)
