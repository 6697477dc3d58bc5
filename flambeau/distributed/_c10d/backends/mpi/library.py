"""The MPI library: where it is, and how this process becomes part of an MPI world.

mpi4py gives the interface and MPICH, a package of its own, the library. MPI can be initialized
once in a process, so there is one world at most; groups that are made later, also after
`destroy_process_group`, are communicators of those processes.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib.util
import os
import secrets
import sys
import time
from typing import Any

from flambeau.distributed._c10d.backends.mpi.process_manager import ProcessManager, process_mapping
from flambeau.distributed._c10d.stores import Store
from flambeau.distributed._c10d.transport.addresses import machine

_SERIALIZED, _MULTIPLE = 2, 3               # MPI_THREAD_*, as MPICH numbers them


@functools.cache
def library_path() -> str | None:
    """The file of the MPI library that mpi4py will load, if there is one made by MPICH: beside
    this Python (the package `mpich`), or where `MPI4PY_LIBMPI` points."""
    named = os.environ.get("MPI4PY_LIBMPI")
    if named:
        return named
    for pattern in ("lib/libmpi.so.12", "lib/libmpi.12.dylib"):
        found = glob.glob(os.path.join(sys.prefix, pattern))
        if found:
            return found[0]
    return None


@functools.cache
def is_installed() -> bool:
    """Are mpi4py and MPICH there?"""
    return importlib.util.find_spec("mpi4py") is not None and library_path() is not None


class World:
    """The processes that have initialized MPI together. `MPI` is mpi4py's module."""

    current: World | None = None

    def __init__(self, MPI: Any, name: str, manager: ProcessManager | None = None):
        self.MPI, self.name, self._manager = MPI, name, manager
        self.rank, self.size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
        self.pid = os.getpid()
        self.last_tag = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
        MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
        MPI.COMM_SELF.Set_errhandler(MPI.ERRORS_RETURN)


def membership() -> str:
    """What this process can offer to a group: a place in a world (`NAME RANK`), to join one
    (`new`), or nothing."""
    if not is_installed():
        return ""
    world = World.current
    if world is not None:
        return f"{world.name} {world.rank}" if world.pid == os.getpid() else ""
    if _is_initialized():                   # the program, or mpiexec, has done it
        from mpi4py import MPI
        name = MPI.COMM_WORLD.bcast(secrets.token_hex(8), 0)
        World.current = World(MPI, name)
        return membership()
    return "new"


def _is_initialized() -> bool:
    if "mpi4py.MPI" in sys.modules:
        return bool(sys.modules["mpi4py.MPI"].Is_initialized())
    return False


def join(store: Store, rank: int, size: int) -> World:
    """Make the world of all processes that share a store."""
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    if rank == 0:
        store.set("name", f"flambeau_{secrets.token_hex(8)}")
    name = store.get("name").decode()
    store.set(f"host/{rank}", machine())
    hosts = [store.get(f"host/{other}").decode() for other in range(size)]
    manager = ProcessManager(store, rank, size, name, process_mapping(hosts))
    _initialize(manager)
    store.barrier("initialized", size)
    manager.store = None                    # whose server may end now
    _unlink_memory()
    from mpi4py import MPI
    World.current = World(MPI, name, manager)
    return World.current


_MEMORY = ("/dev/shm/mpich_shm_", "/dev/shm/ucx_shm_posix_")
_STARTING = 60.0                            # seconds in which a job surely maps its memory


def _unlink_memory() -> None:
    """Take away the name of the memory that the processes of this machine share, as all of them
    have it now: then nothing is left of it however they end. So with what jobs have left that
    ended while they started."""
    found = _names()
    mine = _held("self") if found else set()
    for path in mine.intersection(found):
        with contextlib.suppress(OSError):
            os.unlink(path)
    remove_memory_of_nobody(time.time() - _STARTING, after=False)


def remove_memory_of_nobody(moment: float, after: bool = True) -> None:
    """Remove memory that this user's processes have shared and none has any more: what was made
    after a moment, or before."""
    stale = []
    for path in _names():
        with contextlib.suppress(OSError):
            about = os.stat(path)
            if about.st_uid == os.geteuid() and (about.st_mtime >= moment) == after:
                stale.append(path)
    held = set().union(*map(_held, filter(str.isdigit, os.listdir("/proc")))) if stale else set()
    for path in set(stale) - held:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _names() -> list[str]:
    return [path for prefix in _MEMORY for path in glob.glob(f"{prefix}*")]


def _held(pid: str) -> set[str]:
    """The files of that kind that a process has in its memory, or open."""
    found = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
        found = {line.split()[-1] for line in file if line.split()[-1].startswith(_MEMORY)}
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def _initialize(manager: ProcessManager) -> None:
    """`MPI_Init_thread` through ctypes, which lets other threads run: one of them answers."""
    library = ctypes.CDLL(library_path(), mode=ctypes.RTLD_GLOBAL)
    before = dict(os.environ)
    os.environ.update(manager.environment())
    os.environ.setdefault("MPIR_CVAR_ENABLE_GPU", "0")
    provided = ctypes.c_int()
    try:
        if library.MPI_Init_thread(None, None, _MULTIPLE, ctypes.byref(provided)):
            raise RuntimeError("MPI_Init_thread has failed")
        if provided.value < _SERIALIZED:
            raise RuntimeError(f"MPI was built for one thread only: {library_path()}")
    finally:
        for variable in manager.environment():          # not for processes that this one starts
            if variable in before:
                os.environ[variable] = before[variable]
            else:
                os.environ.pop(variable, None)
