"""Options of `save` and `load` that hold for the whole program, or for a block.

`flambeau.utils.serialization.config` shows them as `load.mmap`, `save.storage_alignment` and so on;
`torch.serialization` has functions for some.
"""
from __future__ import annotations

import contextlib
import mmap
import sys
import threading
from collections.abc import Iterator
from enum import Enum
from typing import Any

# Windows has neither.
MAP_PRIVATE: int | None = getattr(mmap, "MAP_PRIVATE", None)
MAP_SHARED: int | None = getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(Enum):
    """The order of bytes in files that don't say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class Options:
    """A fixed set of options with values that can be set."""

    def __init__(self, name: str, **values: Any):
        self.__dict__.update(values, _name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"torch.utils.serialization.config.{self._name}.{name} does not "
                                 "exist")
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.utils.serialization.config.{self._name}.{name} does not exist")


load = Options("load", mmap=False, endianness=None, mmap_flags=MAP_PRIVATE,
               calculate_storage_offsets=False)
save = Options("save", compute_crc32=True, use_pinned_memory_for_d2h=False, storage_alignment=64)


@contextlib.contextmanager
def patch(changes: dict[str, Any] | str | None = None, value: Any = None, **more: Any
          ) -> Iterator[None]:
    """Set options until the block ends: `patch({"save.storage_alignment": 4096})`."""
    changes = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
    before = []
    try:
        for name, new in changes.items():
            owner, _, option = name.partition(".")
            options = {"load": load, "save": save}[owner]
            before.append((options, option, getattr(options, option)))
            setattr(options, option, new)
        yield
    finally:
        for options, option, old in before:
            setattr(options, option, old)


def file_byte_order() -> str:
    """The order of bytes of files that don't say it."""
    order = load.endianness or LoadEndianness.NATIVE
    return sys.byteorder if order is LoadEndianness.NATIVE else order.name.lower()


# ---- the functions of torch.serialization --------------------------------------------------------


def get_default_load_endianness() -> LoadEndianness | None:
    """What `set_default_load_endianness` was told."""
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the order of bytes of files that don't say it."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness\nexpected "
                        f"LoadEndianness or None, but got {type(endianness).__name__}")
    load.endianness = endianness


def get_crc32_options() -> bool:
    """What `set_crc32_options` was told."""
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Say whether files that are saved need checksums. They have them in any case; files without,
    which PyTorch writes then, can be read."""
    save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """What `set_default_mmap_options` was told."""
    return load.mmap_flags


class set_default_mmap_options:
    """Say how `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` (the default) keeps what is written
    to tensors from the file, `mmap.MAP_SHARED` writes it there. Also a context manager."""

    def __init__(self, flags: int):
        if MAP_PRIVATE is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for "
                               "Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected "
                             f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self.prev, load.mmap_flags = load.mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        load.mmap_flags = self.prev


class _OfThread(threading.local):
    """What a block sets for a thread."""

    skip_data = False
    materialize_fake_tensors = False


of_thread = _OfThread()


class skip_data:
    """Inside, `save` leaves room for the data of tensors and writes zeros there, and `load` reads
    none of it: tensors come with memory that holds anything.

    >>> import io, flambeau
    >>> file = io.BytesIO()
    >>> with skip_data():
    ...     flambeau.save(flambeau.ones(2), file)
    >>> flambeau.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = of_thread.skip_data, of_thread.materialize_fake_tensors
        of_thread.skip_data = True
        of_thread.materialize_fake_tensors = self.materialize_fake_tensors

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        of_thread.skip_data, of_thread.materialize_fake_tensors = self._before
