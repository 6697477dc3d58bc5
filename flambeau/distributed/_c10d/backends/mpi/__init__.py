"""Process groups on MPI: the backend `mpi`.

`process_manager` answers MPICH in place of a launcher, `library` makes this process part of an MPI
world, `data` and `moves` carry tensors, `messages` those between two processes; `ProcessGroupMPI`
is the backend.
"""
from __future__ import annotations

from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.backends.mpi.library import World, is_installed, join, membership
from flambeau.distributed._c10d.stores import Store
from flambeau.distributed._c10d.transport.connections import Peers


def _memberships(store: Store, rank: int, size: int) -> list[str]:
    """What each process can offer."""
    if not store.check([f"mpi/{rank}"]):
        store.set(f"mpi/{rank}", membership())
    return [store.get(f"mpi/{other}").decode() for other in range(size)]


def _places(found: list[str]) -> list[int] | None:
    """The ranks in the MPI world that they all share, if they do."""
    parts = [entry.split(" ") for entry in found]
    if any(len(part) != 2 or part[0] != parts[0][0] for part in parts):
        return None
    return [int(part[1]) for part in parts]


def everywhere(store: Store, rank: int, size: int) -> bool:
    """Can these processes use MPI together? All get the same answer."""
    found = _memberships(store, rank, size)
    return all(entry == "new" for entry in found) or _places(found) is not None


def make_group(store: Store, rank: int, ranks: list[int], name: str, timeout: timedelta,
               options: Any, peers: Peers | None) -> Any:
    """A group of these members of the default group, which meet in a store."""
    from flambeau.distributed._c10d.backends.mpi.process_group import MPIOptions, ProcessGroupMPI
    size = len(ranks)
    options = options if isinstance(options, MPIOptions) else MPIOptions(timeout)
    options.group_name, options.global_ranks_in_group = name, ranks
    own = peers is None
    peers = Peers(store, rank, size, timeout) if peers is None else peers
    world, places = None, [0]
    if size > 1:
        world, places = _world(store, rank, size)
    return ProcessGroupMPI(rank, size, options, peers, name=name, ranks=ranks, world=world,
                           places=places, own_peers=own)


def _world(store: Store, rank: int, size: int) -> tuple[World, list[int]]:
    """The MPI world that these processes share, and their places in it."""
    found = _memberships(store, rank, size)
    if all(entry == "new" for entry in found):
        return join(store, rank, size), list(range(size))
    places = _places(found)
    if places is None:
        raise RuntimeError(_why_not(found))
    return World.current, places


def _why_not(found: list[str]) -> str:
    without = [str(rank) for rank, entry in enumerate(found) if not entry]
    if without:
        return (f"backend mpi: mpi4py and MPICH are not installed for rank {', '.join(without)}: "
                "pip install 'flambeau[mpi]'")
    return ("backend mpi: a process can initialize MPI once, and these processes have not done so "
            "together; backend gloo can make this group")


__all__ = ["everywhere", "is_installed", "make_group"]
