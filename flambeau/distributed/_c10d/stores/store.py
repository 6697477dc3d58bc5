"""Key-value stores, through which processes find each other: in memory, and views of others."""
from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from flambeau._support.c_functions import matched


class DistError(RuntimeError):
    """What went wrong between processes."""


class DistBackendError(DistError):
    """A backend failed."""


class DistNetworkError(DistError):
    """A connection failed."""


class DistStoreError(DistError):
    """A store failed, mostly by a timeout."""


class QueueEmptyError(DistStoreError):
    """There is nothing in a store's queue."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"


class Table:
    """The entries of a store, and those who wait for some. All values are bytes."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.queues: dict[str, list[bytes]] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            self.entries[key] = value
            self.changed.notify_all()

    def append(self, key: str, value: bytes) -> None:
        with self.changed:
            self.set(key, self.entries.get(key, b"") + value)

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            total = int(self.entries.get(key, b"0")) + amount
            self.set(key, str(total).encode())
            return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        with self.changed:
            current = self.entries.get(key)
            if current is None and expected:
                return expected
            if current is None or current == expected:
                self.set(key, desired)
                return desired
            return current

    def delete(self, key: str) -> bool:
        with self.changed:
            return self.entries.pop(key, None) is not None

    def check(self, keys: list[str]) -> bool:
        with self.changed:
            return all(key in self.entries for key in keys)

    def wait(self, keys: list[str], seconds: float) -> bool:
        """Were all keys there in time?"""
        with self.changed:
            return self.changed.wait_for(lambda: self.check(keys), seconds)

    def get(self, key: str, seconds: float) -> bytes | None:
        """The value, None if it did not come in time."""
        with self.changed:
            return self.entries[key] if self.wait([key], seconds) else None

    def keys(self) -> list[str]:
        with self.changed:
            return list(self.entries)

    def queue_push(self, key: str, value: bytes) -> None:
        with self.changed:
            self.queues.setdefault(key, []).append(value)
            self.changed.notify_all()

    def queue_pop(self, key: str, seconds: float) -> bytes | None:
        """The first value, None if there was none in time."""
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.queues, seconds):
                return None
            value = self.queues[key].pop(0)
            if not self.queues[key]:
                del self.queues[key]
            return value

    def queue_len(self, key: str) -> int:
        with self.changed:
            return len(self.queues.get(key, ()))


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def takes(*parameters: str, owner: str = "Store") -> Any:
    """Decorates a method that PyTorch has in C, with these parameters after `self`."""
    home = "torch._C._distributed_c10d."
    written = [f"(self: {home}{owner}" + ("" if one[0] == ")" else ", ") + one.replace(
        ": int", ": typing.SupportsInt | typing.SupportsIndex").replace(
        "[str]", "collections.abc.Sequence[str]") for one in parameters]
    return matched("\n".join(written), {
        home + "Store": lambda value: value is None or isinstance(value, Store)})


class Store:
    """What all stores do. Values are strings or bytes, and come back as bytes. A store that is
    written in Python defines `set`, `get`, `add` and what else it offers."""

    _timeout = timedelta(seconds=300)
    _own_keys = 0                           # entries that the store itself has made

    def _call(self, method: str, *args: Any) -> Any:
        """Call a method of the `Table`, wherever it is; of stores that have none, the public
        method."""
        name = {"delete": "delete_key", "keys": "list_keys"}.get(method, method)
        if getattr(type(self), name) is getattr(Store, name):
            raise NotImplementedError(f"{type(self).__name__}.{name}: stores are HashStore, "
                                      "FileStore, TCPStore and PrefixStore, and classes that "
                                      "define the method")
        if method == "wait":
            return self._arrived(*args)
        return getattr(self, name)(*(args[:1] if method in ("get", "queue_pop") else args))

    def __getattr__(self, name: str) -> Any:
        cls = type(self)
        home = "torch._C._distributed_c10d." if cls.__module__.startswith(
            ("flambeau.", "torch.")) else ""
        raise AttributeError(f"'{home}{cls.__name__}' object has no attribute '{name}'")

    def _arrived(self, keys: list[str], seconds: float) -> bool:
        """Did `wait` find the keys in time?"""
        try:
            self.wait(keys, timedelta(seconds=seconds))
        except DistStoreError:
            return False
        return True

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        return DistStoreError("Wait timeout")

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    @takes("arg0: datetime.timedelta) -> None")
    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    @takes("arg0: str, arg1: str) -> None")
    def set(self, key: str, value: Any) -> None:
        """Store a value."""
        self._call("set", key, _bytes(value))

    @takes("arg0: str) -> bytes")
    def get(self, key: str) -> bytes:
        """The value; waits for it."""
        value = self._call("get", key, self._timeout.total_seconds())
        if value is None:
            raise self._timed_out([key], self._timeout)
        return value

    @takes("arg0: str, arg1: int) -> int")
    def add(self, key: str, amount: int) -> int:
        """Add to a counter, 0 at first; gives the sum."""
        return self._call("add", key, int(amount))

    @takes("arg0: str, arg1: str) -> None")
    def append(self, key: str, value: Any) -> None:
        """Append to a value."""
        self._call("append", key, _bytes(value))

    @takes("arg0: str, arg1: str, arg2: str) -> bytes")
    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Store `desired_value` if the value is `expected_value` (or both are absent: ""); gives
        the value that is there then."""
        return self._call("compare_set", key, _bytes(expected_value),
                          _bytes(desired_value))

    @takes("arg0: str) -> bool")
    def delete_key(self, key: str) -> bool:
        """Delete an entry; was there one?"""
        return self._call("delete", key)

    @takes("arg0: [str]) -> bool")
    def check(self, keys: list[str]) -> bool:
        """Are there entries for all keys?"""
        return self._call("check", list(keys))

    @takes("arg0: [str]) -> None", "arg0: [str], arg1: datetime.timedelta) -> None")
    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until there are entries for all keys."""
        timeout = self._timeout if timeout is None else timeout
        if not self._call("wait", list(keys), timeout.total_seconds()):
            raise self._timed_out(list(keys), timeout)

    @takes("arg0: [str]) -> list[bytes]")
    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    @takes("arg0: [str], arg1: [str]) -> None")
    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        """Store several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    @takes(") -> list[str]")
    def list_keys(self) -> list[str]:
        """All keys."""
        return self._call("keys")

    @takes(") -> int")
    def num_keys(self) -> int:
        """The number of entries; TCP and file stores count one of their own."""
        return len(self._call("keys")) + self._own_keys

    @takes(") -> bool")
    def has_extended_api(self) -> bool:
        """True: `append`, `multi_get` and `multi_set` are there."""
        return True

    @takes("arg0: str, arg1: str) -> None")
    def queue_push(self, key: str, value: Any) -> None:
        """Put a value at the end of a queue."""
        self._call("queue_push", key, _bytes(value))

    @takes("key: str, block: bool = True) -> bytes")
    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; waits for it, unless `block` is False."""
        value = self._call("queue_pop", key, self.timeout.total_seconds() if block else 0)
        if value is None:
            raise self._timed_out([key], self.timeout) if block else \
                QueueEmptyError("queue is empty")
        return value

    @takes("arg0: str) -> int")
    def queue_len(self, key: str) -> int:
        """The number of values in a queue."""
        return self._call("queue_len", key)

    @takes("key: str, world_size: int, timeout: datetime.timedelta | None = None) -> None")
    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until that many have called this with that key."""
        if self.add(f"{key}/num_members", 1) == world_size:
            self.set(f"{key}/last_member", "1")
        self.wait([f"{key}/last_member"], *([] if timeout is None else [timeout]))

    @takes(") -> torch._C._distributed_c10d.Store")
    def clone(self) -> Store:
        """Another way to the same entries, for another thread: this one serves all threads."""
        return self


class HashStore(Store):
    """A store in the memory of this process, for its threads.

    >>> store = HashStore()
    >>> store.set("first_key", "first_value")
    >>> store.get("first_key")
    b'first_value'
    """

    @takes(") -> None", owner="HashStore")
    def __init__(self) -> None:
        self._table = Table()

    def _call(self, method: str, *args: Any) -> Any:
        return getattr(self._table, method)(*args)


class PrefixStore(Store):
    """A view of another store in which all keys begin with `prefix/`.

    >>> inner = flambeau.distributed.HashStore()
    >>> PrefixStore("mine", inner).set("key", "value")
    >>> inner.get("mine/key")
    b'value'
    """

    @takes("prefix: str, store: torch._C._distributed_c10d.Store) -> None", owner="PrefixStore")
    def __init__(self, prefix: str, store: Store):
        if store is None:
            raise ValueError("store argument cannot be None")
        self.prefix, self.underlying_store = prefix, store

    @property
    def timeout(self) -> timedelta:
        """How long the store below waits."""
        return self.underlying_store.timeout

    @takes("arg0: datetime.timedelta) -> None")
    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long the store below waits."""
        self.underlying_store.set_timeout(timeout)

    @property
    def _timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        return self.underlying_store._timed_out([f"{self.prefix}/{k}" for k in keys], timeout)

    @property
    def _underlying_non_prefix_store(self) -> Store:
        found = self.underlying_store
        while isinstance(found, PrefixStore):
            found = found.underlying_store
        return found

    @takes(") -> int")
    def num_keys(self) -> int:
        """The number of entries of the store below."""
        return self.underlying_store.num_keys()

    def _call(self, method: str, *args: Any) -> Any:
        if method == "keys":
            start = f"{self.prefix}/"
            return [key[len(start):] for key in self.underlying_store._call("keys")
                    if key.startswith(start)]
        first = ([f"{self.prefix}/{key}" for key in args[0]] if isinstance(args[0], list)
                 else f"{self.prefix}/{args[0]}")
        return self.underlying_store._call(method, first, *args[1:])
