"""`EtcdStore`: a store whose entries are in etcd, under a prefix."""
from __future__ import annotations

import datetime
import random
import time
from base64 import b64decode, b64encode
from typing import Any

from flambeau.distributed._c10d.stores import Store

try:
    import etcd
except ModuleNotFoundError:
    from flambeau.distributed.elastic.rendezvous import _etcd_stub as etcd


def cas_delay() -> None:
    """Wait a little before a write that was outrun is tried again."""
    time.sleep(random.uniform(0, 0.1))


class EtcdStore(Store):
    """A store in etcd, by a client of python-etcd. Keys and values are in base64 there."""

    def __init__(self, etcd_client: Any, etcd_store_prefix: str,
                 timeout: datetime.timedelta | None = None):
        super().__init__()
        self.client, self.prefix = etcd_client, etcd_store_prefix
        if not self.prefix.endswith("/"):
            self.prefix += "/"
        self.set_timeout(datetime.timedelta(seconds=300) if timeout is None else timeout)

    def _key(self, key: Any) -> str:
        return self.prefix + self._encode(key)

    def set(self, key: Any, value: Any) -> None:
        """Set an entry."""
        self.client.set(key=self._key(key), value=self._encode(value))

    def get(self, key: Any) -> bytes:
        """The entry of that name, which is waited for."""
        return self._decode(self._wait_for([key], None)[self._key(key)])

    def add(self, key: Any, num: int) -> int:
        """Add a number to that of an entry, 0 if there is none; gives the sum."""
        place = self._key(key)
        try:
            return self._first(place, num)
        except etcd.EtcdAlreadyExist:
            pass
        while True:
            before = self.client.get(key=place).value
            total = int(self._decode(before)) + num
            try:
                self.client.test_and_set(key=place, value=self._encode(str(total)),
                                         prev_value=before)
                return total
            except etcd.EtcdCompareFailed:
                cas_delay()

    def _first(self, place: str, num: int) -> int:
        made = self.client.write(key=place, value=self._encode(str(num)), prevExist=False)
        return int(self._decode(made.value))

    def wait(self, keys: list[Any], override_timeout: datetime.timedelta | None = None) -> None:
        """Wait until all entries are there."""
        self._wait_for(keys, override_timeout)

    def check(self, keys: list[Any]) -> bool:
        """Are all entries there?"""
        return self._found([self._key(key) for key in keys]) is not None

    def _encode(self, value: Any) -> str:
        return b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()

    def _decode(self, value: str) -> bytes:
        return b64decode(value.encode())

    def _found(self, places: list[str]) -> dict[str, str] | None:
        """The entries at all these places; None if one is not there."""
        try:
            return {place: self.client.get(key=place).value for place in places}
        except etcd.EtcdKeyNotFound:
            return None

    def _wait_for(self, keys: list[Any], timeout: datetime.timedelta | None) -> dict[str, str]:
        places = [self._key(key) for key in keys]
        limit = self.timeout if timeout is None else timeout
        end = time.monotonic() + limit.total_seconds()
        while True:
            found = self._found(places)
            if found is not None:
                return found
            left = end - time.monotonic()
            if left <= 0:
                raise LookupError("Timed out while waiting for keys in EtcdStore")
            try:            # until something changes
                self.client.watch(key=self.prefix, recursive=True, timeout=min(left, 1.0))
            except (etcd.EtcdWatchTimedOut, etcd.EtcdEventIndexCleared, etcd.EtcdKeyNotFound):
                pass
