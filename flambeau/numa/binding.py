"""Binding a process to the processors that are near its GPU.

A machine has sockets, a socket has NUMA nodes, each with memory of its own and some processors, of
which those that share a cache are a core complex. Which are near a GPU says the system's `/sys`.
"""
from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["AffinityMode", "NumaOptions"]

_TParams = ParamSpec("_TParams")
_TReturn = TypeVar("_TReturn")
_NODES, _CPUS = "/sys/devices/system/node", "/sys/devices/system/cpu"
logger = get_logger(__name__)


class AffinityMode(str, Enum):        # noqa: UP042 - prints as an Enum does
    """To which processors a process is bound."""

    NODE = "node"                       # all of the NUMA node of its GPU
    SOCKET = "socket"                   # all of the socket
    EXCLUSIVE = "exclusive"             # a share of the node, for this GPU alone
    CORE_COMPLEX = "core-complex"       # processors of the node that share a cache


@dataclass(frozen=True)
class NumaOptions:
    """How to bind, and whether to go on without where that fails."""

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False


def _maybe_wrap_command_args_with_numa_binding(command_args: tuple[str, ...], *, gpu_index: int,
                                               numa_options: NumaOptions | None) -> tuple[str, ...]:
    """A command that runs bound, by the program `numactl`; the same without options."""
    if numa_options is None:
        return command_args
    try:
        return _assemble_numactl_command_args(
            original_command_args=command_args,
            logical_cpu_indices=_get_validated_logical_cpus_to_bind_to(
                gpu_index=gpu_index, numa_options=numa_options))
    except Exception:
        _handle_exception(numa_options=numa_options, logger_kwargs={
            "command_args": command_args, "gpu_index": gpu_index,
            "numa_options": asdict(numa_options)})
        return command_args


def _maybe_wrap_with_numa_binding(func: Callable[_TParams, _TReturn], *, gpu_index: int,
                                  numa_options: NumaOptions | None) -> Callable[_TParams, _TReturn]:
    """A function that first binds the process that calls it; the same without options."""
    if numa_options is None:
        return func

    @wraps(func)
    def wrapped(*args: _TParams.args, **kwargs: _TParams.kwargs) -> _TReturn:
        _maybe_apply_numa_binding_to_current_process(gpu_index=gpu_index,
                                                     numa_options=numa_options)
        return func(*args, **kwargs)
    return wrapped


def _maybe_apply_numa_binding_to_current_process(*, gpu_index: int, numa_options: NumaOptions
                                                 ) -> None:
    try:
        _bind_all_threads_in_current_process_to_logical_cpus(
            logical_cpu_indices=_get_validated_logical_cpus_to_bind_to(
                gpu_index=gpu_index, numa_options=numa_options))
    except Exception:
        _handle_exception(numa_options=numa_options, logger_kwargs={
            "gpu_index": gpu_index, "numa_options": asdict(numa_options)})


def _handle_exception(*, numa_options: NumaOptions, logger_kwargs: dict[str, Any]) -> None:
    """Raise the error at hand again, or only tell of it if that is what the options say."""
    logger.exception("Failed to apply NUMA binding for input=%s", logger_kwargs)
    if not numa_options.should_fall_back_if_binding_fails:
        raise
    logger.warning("Continuing executing without applying NUMA binding, despite exception %s",
                   traceback.format_exc())


def _assemble_numactl_command_args(*, original_command_args: tuple[str, ...],
                                   logical_cpu_indices: set[int]) -> tuple[str, ...]:
    return ("numactl", f"--physcpubind={_get_ranges_str_from_ints(logical_cpu_indices)}",
            *original_command_args)


def _bind_all_threads_in_current_process_to_logical_cpus(*, logical_cpu_indices: set[int]
                                                         ) -> None:
    # threads that end meanwhile have no one to bind
    for thread in map(int, os.listdir("/proc/self/task")):
        try:
            os.sched_setaffinity(thread, logical_cpu_indices)
        except ProcessLookupError:
            continue


def _get_validated_logical_cpus_to_bind_to(*, gpu_index: int, numa_options: NumaOptions
                                           ) -> set[int]:
    found = _get_logical_cpus_to_bind_to(gpu_index=gpu_index, numa_options=numa_options)
    _raise_if_binding_invalid(logical_cpu_indices=found)
    return found


def _raise_if_binding_invalid(*, logical_cpu_indices: set[int]) -> None:
    if shutil.which("numactl") is None:
        raise RuntimeError("numactl CLI is required for NUMA binding")
    if not logical_cpu_indices:
        raise RuntimeError("Must bind to a non-empty set of CPU indices")


# Which processors ---------------------------------------------------------------------------


def _get_logical_cpus_to_bind_to(*, gpu_index: int, numa_options: NumaOptions) -> set[int]:
    choose = {AffinityMode.NODE: _node_get_logical_cpus_to_bind_to,
              AffinityMode.SOCKET: _socket_get_logical_cpus_to_bind_to,
              AffinityMode.EXCLUSIVE: _exclusive_get_logical_cpus_to_bind_to,
              AffinityMode.CORE_COMPLEX: _core_complex_get_logical_cpus_to_bind_to}
    if numa_options.affinity_mode not in choose:
        raise ValueError(f"Affinity mode {numa_options.affinity_mode} not supported.")
    return choose[numa_options.affinity_mode](gpu_index=gpu_index)


def _node_get_logical_cpus_to_bind_to(*, gpu_index: int) -> set[int]:
    return _get_allowed_logical_cpu_indices_for_numa_node(
        numa_node_index=_get_numa_node_index_for_gpu_index(gpu_index=gpu_index))


def _socket_get_logical_cpus_to_bind_to(*, gpu_index: int) -> set[int]:
    node = _get_numa_node_index_for_gpu_index(gpu_index=gpu_index)
    socket = _get_socket_index_for_numa_node(numa_node_index=node)
    return set().union(*(
        _get_allowed_logical_cpu_indices_for_numa_node(numa_node_index=neighbour)
        for neighbour in _get_numa_node_indices_for_socket_index(socket_index=socket)))


def _exclusive_get_logical_cpus_to_bind_to(*, gpu_index: int) -> set[int]:
    """The cores of the node, dealt out to its GPUs: the first ones get one more."""
    node = _get_numa_node_index_for_gpu_index(gpu_index=gpu_index)
    gpus = sorted(_get_gpu_indices_for_numa_node(numa_node_index=node))
    cores = _group_allowed_cpus(node, _get_logical_cpu_indices_sharing_same_physical_core_as)
    share, extra = divmod(len(cores), len(gpus))
    if share < 1:
        raise RuntimeError(
            f"There are only {len(cores)} physical cores on numa_node_index={node}, but there are "
            f"{len(gpus)} GPUs associated with this NUMA node.")
    place = gpus.index(gpu_index)
    start = place * share + min(place, extra)
    return set().union(*cores[start:start + share + (place < extra)])


def _core_complex_get_logical_cpus_to_bind_to(*, gpu_index: int) -> set[int]:
    """The largest group of processors that share a cache, each GPU of the node another one."""
    node = _get_numa_node_index_for_gpu_index(gpu_index=gpu_index)
    gpus = sorted(_get_gpu_indices_for_numa_node(numa_node_index=node))
    groups = _group_allowed_cpus(node, _get_logical_cpus_sharing_same_max_level_cache_as)
    groups.sort(key=lambda group: (-len(group), min(group)))
    return groups[gpus.index(gpu_index) % len(groups)]


def _group_allowed_cpus(node: int, neighbours: Callable[..., set[int]]) -> list[set[int]]:
    """The processors of a node that this thread may use, those together that are neighbours."""
    allowed = _get_allowed_logical_cpu_indices_for_numa_node(numa_node_index=node)
    groups = {frozenset(neighbours(logical_cpu_index=cpu) & allowed) for cpu in allowed}
    return sorted(map(set, groups), key=min)


# What the system says -----------------------------------------------------------------------


def _get_gpu_count() -> int:
    from flambeau import cuda
    return cuda.device_count()


def _get_numa_node_index_for_gpu_index(*, gpu_index: int) -> int:
    from flambeau import cuda
    about = cuda.get_device_properties(gpu_index)
    address = f"{about.pci_domain_id:04x}:{about.pci_bus_id:02x}:{about.pci_device_id:02x}.0"
    # -1: the machine has one node, and the system does not number it
    return max(0, int(_read(f"/sys/bus/pci/devices/{address}/numa_node")))


def _get_gpu_indices_for_numa_node(*, numa_node_index: int) -> set[int]:
    return {gpu for gpu in range(_get_gpu_count())
            if _get_numa_node_index_for_gpu_index(gpu_index=gpu) == numa_node_index}


def _get_systemwide_numa_node_indices() -> set[int]:
    return _get_set_of_int_from_ranges_str(_read(f"{_NODES}/possible"))


def _get_socket_index_for_numa_node(*, numa_node_index: int) -> int:
    return _get_socket_index_for_cpu(
        cpu_index=_get_arbitrary_allowed_cpu_index_for_numa_node(numa_node_index=numa_node_index))


def _get_socket_index_for_cpu(*, cpu_index: int) -> int:
    try:
        return int(_read(f"{_CPUS}/cpu{cpu_index}/topology/physical_package_id"))
    except FileNotFoundError as error:
        raise RuntimeError(f"Could not determine socket for cpu_index={cpu_index}") from error


def _get_numa_node_indices_for_socket_index(*, socket_index: int) -> set[int]:
    return {node for node in _get_systemwide_numa_node_indices()
            if _get_socket_index_for_numa_node(numa_node_index=node) == socket_index}


def _get_arbitrary_allowed_cpu_index_for_numa_node(*, numa_node_index: int) -> int:
    return min(_get_allowed_logical_cpu_indices_for_numa_node(numa_node_index=numa_node_index))


def _get_allowed_logical_cpu_indices_for_numa_node(*, numa_node_index: int) -> set[int]:
    return (_get_cpu_indices_for_numa_node_MAYBE_NOT_ALLOWED(numa_node_index=numa_node_index)
            & _get_allowed_cpu_indices_for_current_thread())


def _get_allowed_cpu_indices_for_current_thread() -> set[int]:
    return os.sched_getaffinity(0)


def _get_cpu_indices_for_numa_node_MAYBE_NOT_ALLOWED(*, numa_node_index: int) -> set[int]:
    try:
        return _get_set_of_int_from_ranges_str(_read(f"{_NODES}/node{numa_node_index}/cpulist"))
    except FileNotFoundError as error:
        raise RuntimeError("Could not determine CPUs corresponding to "
                           f"numa_node_index={numa_node_index}.") from error


def _get_logical_cpu_indices_sharing_same_physical_core_as(*, logical_cpu_index: int) -> set[int]:
    return _get_set_of_int_from_ranges_str(
        _read(f"{_CPUS}/cpu{logical_cpu_index}/topology/thread_siblings_list"))


def _get_logical_cpus_sharing_same_max_level_cache_as(*, logical_cpu_index: int) -> set[int]:
    caches = f"{_CPUS}/cpu{logical_cpu_index}/cache"
    last = max((name for name in os.listdir(caches) if name.startswith("index")),
               key=lambda name: int(_read(f"{caches}/{name}/level")))
    return _get_set_of_int_from_ranges_str(_read(f"{caches}/{last}/shared_cpu_list"))


def _get_set_of_int_from_ranges_str(ranges_str: str) -> set[int]:
    """The numbers in a list of ranges.

    >>> sorted(_get_set_of_int_from_ranges_str("0-2,7"))
    [0, 1, 2, 7]
    """
    found: set[int] = set()
    for part in filter(None, map(str.strip, ranges_str.split(","))):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _get_ranges_str_from_ints(ints: set[int]) -> str:
    """Numbers as a list of ranges.

    >>> _get_ranges_str_from_ints({0, 1, 2, 7})
    '0-2,7'
    """
    ranges: list[list[int]] = []
    for number in sorted(ints):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
