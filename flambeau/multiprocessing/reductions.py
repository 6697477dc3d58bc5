"""Memory that several processes map, and how tensors on it travel between them.

`share(storage)` moves a storage to such memory. What is sent through a queue or a pipe of
`multiprocessing`, or to a process that is started, is moved there first; then a name of the memory
travels, not the values, and both processes see what either writes. Two strategies make the name:

* `file_descriptor`: a file without a name, whose descriptor the system passes on. Nothing is left
  behind when all processes have gone, but each shared storage keeps a descriptor open.
* `file_system`: a file in `/dev/shm`, opened by its name. A counter in its header says how many
  processes, and messages on their way, still need it; the last one deletes the file. A process that
  is killed leaves it behind.
"""
from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import sys
import tempfile
import weakref
from multiprocessing import reduction, util
from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.storage import SharedArray, TypedStorage, UntypedStorage
from flambeau.utils.hooks import warn_if_has_hooks

# How a file is recognised -> the memory that this process has mapped from it.
shared_cache: weakref.WeakValueDictionary[Any, SharedArray] = weakref.WeakValueDictionary()
strategy = "file_descriptor"
_HEADER = 64                            # bytes before the values of a named file
_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
_names = (f"{_FOLDER}/torch_{os.getpid()}_{os.urandom(4).hex()}_{i}" for i in itertools.count())


# ---- memory --------------------------------------------------------------------------------------


def shared_array(size: int) -> SharedArray:
    """New bytes, all zero, that other processes can map."""
    if strategy == "file_system":
        path = next(_names)
        with open(path, "xb") as file:
            file.truncate(_HEADER + size)
        _count(path, 1)
        return _map_path(path, size)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("torch")
    else:
        fd, path = tempfile.mkstemp(dir=_FOLDER)
        os.unlink(path)
    os.ftruncate(fd, max(size, 1))
    return _map_descriptor(fd, size)


def _mapped(fd: int, size: int, start: int) -> SharedArray:
    options = {"trackfd": False} if sys.version_info >= (3, 13) else {}
    memory = mmap.mmap(fd, start + max(size, 1 - start), **options)
    return np.ndarray.__new__(SharedArray, (size,), np.uint8, memory, start)


def _file_id(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def _map_descriptor(fd: int, size: int) -> SharedArray:
    """Map a file without a name; its descriptor lives as long as the memory."""
    root = _mapped(fd, size, 0)
    root.place = fd
    weakref.finalize(root, os.close, fd)
    shared_cache[_file_id(fd)] = root
    return root


def _map_path(path: str, size: int) -> SharedArray:
    """Map a file with a name, which has been counted for this process."""
    with open(path, "r+b") as file:
        root = _mapped(file.fileno(), size, _HEADER)
    root.place, root.process = path, os.getpid()
    _uncount_at_end(root)
    util.register_after_fork(root, _uncount_at_end)     # which forgets what was to be done
    shared_cache[path] = root
    return root


def _uncount_at_end(root: SharedArray) -> None:
    """When the memory or the process is gone, one user less; a forked process is not counted."""
    if root.process == os.getpid():
        util.Finalize(root, _count, (root.place, -1), exitpriority=0)


def _count(path: str, change: int) -> None:
    """Change the number of users of a named file; the last one deletes it."""
    import fcntl  # which Windows lacks
    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        users = int.from_bytes(file.read(8), "little") + change
        file.seek(0)
        file.write(users.to_bytes(8, "little"))
        if users == 0:
            os.unlink(path)


# ---- storages ------------------------------------------------------------------------------------


def reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """How `multiprocessing` pickles a storage: as the name of its memory, which is shared now."""
    if storage.size() == 0:
        return UntypedStorage, ()
    storage.share_memory_()
    root = storage._root
    if isinstance(root.place, str):
        _count(root.place, 1)           # for the message, until its receiver takes it over
        return rebuild_storage_filename, (root.place, root.size)
    if (child := get_spawning_popen()) is not None:     # it is handed what is open when it starts
        vars(child).setdefault("_storages", []).append(root)
    return rebuild_storage_fd, (reduction.DupFd(root.place), root.size)


def rebuild_storage_fd(descriptor: Any, size: int) -> UntypedStorage:
    fd = descriptor.detach()
    root = shared_cache.get(_file_id(fd))
    if root is None:
        root = _map_descriptor(fd, size)
    else:
        os.close(fd)
    return UntypedStorage._of(root)


def rebuild_storage_filename(path: str, size: int) -> UntypedStorage:
    root = shared_cache.get(path)
    if root is None:
        root = _map_path(path, size)
    else:
        _count(path, -1)
    return UntypedStorage._of(root)


def reduce_typed_storage(storage: TypedStorage) -> tuple[Any, ...]:
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


# ---- tensors -------------------------------------------------------------------------------------


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """How `multiprocessing` pickles a tensor: its storage, and where in it the tensor lies."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue).")
    warn_if_has_hooks(tensor)
    return tensor.__reduce_ex__(2)      # parts of it that are tensors or storages come back here


def init_reductions() -> None:
    """Have `multiprocessing` pickle tensors and storages by what stands here."""
    for cls in (Tensor, flambeau.nn.Parameter):
        reduction.ForkingPickler.register(cls, reduce_tensor)
    reduction.ForkingPickler.register(UntypedStorage, reduce_storage)
    reduction.ForkingPickler.register(TypedStorage, reduce_typed_storage)
