"""Workers that join and leave."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any


@contextmanager
def _group_membership_management(store: Any, name: str, is_join: bool) -> Iterator[None]:
    """Inside, no other worker joins or leaves."""
    token, me = "RpcGroupManagementToken", f"Token_for_{name}_{'join' if is_join else 'leave'}"
    while True:
        holder = store.compare_set(token, "", me).decode()
        if holder == me:
            break
        store.wait([holder], timedelta(minutes=5))
    try:
        yield
    finally:
        store.set(token, "")
        store.set(me, "Done")


def _update_group_membership(worker_info: Any, my_devices: Any, reverse_device_map: Any,
                             is_join: bool) -> None:
    """Has no effect: workers are looked up in the store when they are called."""
