"""Connections between processes: two of them in one process here, over TCP."""
from __future__ import annotations

import socket
import threading
from datetime import timedelta

import pytest

from flambeau import distributed as dist
from flambeau.distributed._c10d.transport.connections import Peers

SECONDS = timedelta(seconds=10)


@pytest.fixture
def pair():
    store, made = dist.HashStore(), [None, None]

    def connect(rank):
        made[rank] = Peers(store, rank, 2, SECONDS)
    other = threading.Thread(target=connect, args=(1,))
    other.start()
    connect(0)
    other.join()
    yield made
    for peers in made:
        peers.close()


def text(found):
    source, body = found
    return source, bytes(body)


def test_messages_of_a_key_stay_in_order(pair):
    one, two = pair
    for body in (b"a", b"", b"c" * 100_000):
        one.send(1, b"key", body)
    one.send(1, b"other", b"x")
    assert text(two.receive([0], b"other", 5, "test")) == (0, b"x")
    assert [bytes(two.receive([0], b"key", 5, "test")[1]) for _ in range(3)] == [
        b"a", b"", b"c" * 100_000]
    assert not two._boxes and not two._waiting


def test_who_waits_first_gets_the_first(pair):
    one, two = pair
    found = []
    receipts = [two.expect([0], b"key", lambda receipt: found.append(bytes(receipt.body)))
                for _ in range(2)]
    one.send(1, b"key", b"1")
    one.send(1, b"key", b"2")
    one.send(1, b"end", b"")
    two.receive([0], b"end", 5, "test")
    assert [bytes(receipt.body) for receipt in receipts] == [b"1", b"2"] == found


def test_time_is_over(pair):
    with pytest.raises(RuntimeError, match=r"\[Rank 0\] Timed out waiting 30ms for test operation"):
        pair[0].receive([1], b"key", 0.03, "test")
    assert not pair[0]._waiting


def test_a_refusal_ends_the_wait(pair):
    with pytest.raises(RuntimeError, match=r"\[Rank 0\] test does not come about: because"):
        pair[0].receive([1], b"key", 5, "test", refusal=lambda: "because")


def test_who_has_gone(pair):
    one, two = pair
    one.send(1, b"key", b"last")
    waiting = two.expect([0], b"never")
    one.close()
    assert text(two.receive([0], b"key", 5, "test")) == (0, b"last")     # what had come is there
    with pytest.raises(dist.DistNetworkError, match=r"Connection closed by peer \[rank 0\]"):
        two.receive([0], b"never", 5, "test")
    assert waiting.done and isinstance(waiting.error, dist.DistNetworkError)
    with pytest.raises(dist.DistNetworkError, match="closed by peer"):
        for _ in range(100):                    # the first may still be taken by the system
            two.send(0, b"key", bytes(1000))


class Group:
    """A group that says what it is at."""

    finished = 7

    def __init__(self):
        self.notices = {}

    def answer(self):
        return b"at work"


def test_questions_and_what_was_left(pair):
    one, two = pair
    group = two.groups["g"] = Group()
    assert one.ask([1], "g", 5) == {1: b"at work"}
    assert one.ask([1], "unknown", 0.05) == {}
    receipt = one.report_misfit(1, "g", 3, "does not fit")
    for _ in range(100):
        if receipt.done:
            break
        threading.Event().wait(0.02)
    assert receipt.done and group.notices == {(0, 3): "does not fit"}
    two.take_leave()
    two.send(0, b"end", b"")
    one.receive([1], b"end", 5, "test")
    assert one.left == {1: {"g": 7}}


def test_refusals_are_noted_and_taken_back(pair):
    one, two = pair
    for body, wanted in ((b'["g", 4, 1, "all_reduce"]', {(0, "g"): (4, 1, "all_reduce")}),
                         (b'["g", 0, 0, ""]', {})):
        one.tell(1, b"?refused", body)
        one.send(1, b"end", b"")
        two.receive([0], b"end", 5, "test")
        assert two.refused == wanted


def test_strangers_are_not_let_in():
    """Who does not know the secret of the store hangs up, and the others still come together."""
    store, made = dist.HashStore(), [None, None]

    def connect(rank):
        made[rank] = Peers(store, rank, 2, SECONDS)
    first = threading.Thread(target=connect, args=(0,))
    first.start()
    host, _, port = store.get("address/0").decode().rpartition(":")
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"x" * 36)
        stranger.settimeout(5)
        assert stranger.recv(1) == b""
    connect(1)
    first.join()
    made[0].send(1, b"key", b"hello")
    assert text(made[1].receive([0], b"key", 5, "test")) == (0, b"hello")
    for peers in made:
        peers.close()


def test_alone():
    peers = Peers(dist.HashStore(), 0, 1, SECONDS)
    assert peers.ask([], "g", 1) == {}
    with pytest.raises(dist.DistNetworkError):
        peers.send(0, b"key", b"x")
    peers.close()
