"""Workers that join and leave."""
from __future__ import annotations

import threading

import pytest

from flambeau.distributed import HashStore
from flambeau.distributed.rpc._utils import _group_membership_management


def test_one_after_the_other():
    store, inside, most = HashStore(), [], []

    def join(name):
        with _group_membership_management(store, name, True):
            inside.append(name)
            most.append(len(inside))
            inside.remove(name)
    threads = [threading.Thread(target=join, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 4 and store.get("RpcGroupManagementToken") == b""


@pytest.mark.parametrize(("join", "token"), [(True, "join"), (False, "leave")])
def test_the_token(join, token):
    store = HashStore()
    with _group_membership_management(store, "w", join):
        assert store.get("RpcGroupManagementToken") == f"Token_for_w_{token}".encode()
    assert store.get(f"Token_for_w_{token}") == b"Done"
