"""A store in a file."""
from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores.encoding import encode, receive
from flambeau.distributed._c10d.stores.store import Store, Table, takes


class FileStore(Store):
    """A store in a file, for processes that see the same folder. The file is a log of entries,
    read and written under a lock."""

    _own_keys = 1

    @takes("file_name: str, world_size: int = -1) -> None", owner="FileStore")
    def __init__(self, file_name: str, world_size: int = -1):
        self.path = file_name
        with self._locked():
            pass

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        with open(self.path, "a+b") as file:
            try:
                import fcntl
            except ImportError:
                raise NotImplementedError("FileStore: needs file locks as POSIX has them"
                                          ) from None
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            finally:
                file.flush()
                fcntl.flock(file, fcntl.LOCK_UN)

    def _call(self, method: str, *args: Any) -> Any:
        if method in ("wait", "get"):
            return self._poll(method, *args)
        if method.startswith("queue"):
            raise NotImplementedError("queue support is not implemented.")
        with self._locked() as file:
            table = _replay(file)
            before = dict(table.entries)
            result = getattr(table, method)(*args)
            for key in before.keys() | table.entries.keys():
                if before.get(key) != table.entries.get(key):
                    file.write(encode([key, table.entries.get(key)]))
        return result

    def _poll(self, method: str, keys: Any, seconds: float) -> Any:
        end = time.monotonic() + seconds
        while True:
            with self._locked() as file:
                found = getattr(_replay(file), method)(keys, 0)
            if found or found == b"" or time.monotonic() > end:
                return found
            time.sleep(0.01)

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        milliseconds = round(timeout.total_seconds() * 1000)
        return RuntimeError(f"Timeout waiting for key: {keys[0]} after {milliseconds} ms")


def _replay(file: Any) -> Table:
    table = Table()
    file.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            key, value = receive(file)
            if value is None:
                table.entries.pop(key, None)
            else:
                table.entries[key] = value
    file.seek(0, os.SEEK_END)
    return table
