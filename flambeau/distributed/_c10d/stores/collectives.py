"""Collectives of small values through a store."""
from __future__ import annotations

import abc
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores import Store

_FIVE_MINUTES = timedelta(minutes=5)


class ControlCollectives(abc.ABC):
    """What processes exchange beside tensors; each exchange has a key that is used once."""

    @abc.abstractmethod
    def barrier(self, key: str, timeout: timedelta = _FIVE_MINUTES, block: bool = True) -> None:
        """Wait for all."""


class StoreCollectives(ControlCollectives):
    """Process `rank` of `world_size`, which exchange values through a store.

    >>> from flambeau.distributed._c10d.stores import HashStore
    >>> StoreCollectives(HashStore(), 0, 1).all_sum("total", 3)
    3
    """

    def __init__(self, store: Store, rank: int, world_size: int):
        self._store, self._rank, self._size = store, rank, world_size
        self._seen: set[str] = set()

    def _once(self, key: str) -> None:
        if key in self._seen:
            raise RuntimeError(f"Key {key} has already been used.")
        self._seen.add(key)

    def _get(self, key: str, timeout: timedelta) -> bytes:
        self._store.wait([key], timeout)
        return self._store.get(key)

    def barrier(self, key: str, timeout: timedelta = _FIVE_MINUTES, block: bool = True) -> None:
        """Wait for all, unless `block` is False: then the others do not wait for this one."""
        self._once(key)
        if self._store.add(f"{key}/num", 1) == self._size:
            self._store.set(f"{key}/last", "1")
        if block:
            self._get(f"{key}/last", timeout)

    def broadcast_send(self, key: str, data: Any, timeout: timedelta = _FIVE_MINUTES) -> None:
        """Give all a value."""
        self._once(key)
        self._store.set(key, data)

    def broadcast_recv(self, key: str, timeout: timedelta = _FIVE_MINUTES) -> bytes:
        """The value that one has given."""
        self._once(key)
        return self._get(key, timeout)

    def gather_send(self, key: str, data: Any, timeout: timedelta = _FIVE_MINUTES) -> None:
        """Give one a value."""
        self._once(key)
        self._store.set(f"{key}/{self._rank}", data)

    def gather_recv(self, key: str, data: Any, timeout: timedelta = _FIVE_MINUTES) -> list[bytes]:
        """The values of all."""
        self._once(key)
        self._store.set(f"{key}/{self._rank}", data)
        return [self._get(f"{key}/{rank}", timeout) for rank in range(self._size)]

    def scatter_send(self, key: str, data: list[Any], timeout: timedelta = _FIVE_MINUTES) -> bytes:
        """Give each a value of its own; gives that of this one."""
        self._once(key)
        for rank, value in enumerate(data):
            self._store.set(f"{key}/{rank}", value)
        return self._store.get(f"{key}/{self._rank}")

    def scatter_recv(self, key: str, timeout: timedelta = _FIVE_MINUTES) -> bytes:
        """The value that one has given this one."""
        self._once(key)
        return self._get(f"{key}/{self._rank}", timeout)

    def all_gather(self, key: str, data: Any, timeout: timedelta = _FIVE_MINUTES) -> list[bytes]:
        """The values of all, for all."""
        return self.gather_recv(key, data, timeout)

    def all_sum(self, key: str, data: int, timeout: timedelta = _FIVE_MINUTES) -> int:
        """The sum of all values, for all."""
        self._once(key)
        total = f"{key}/sum"
        self._store.add(total, data)
        if self._store.add(f"{key}/num", 1) == self._size:
            self._store.set(f"{key}/last", "1")
        self._get(f"{key}/last", timeout)
        return self._store.add(total, 0)
