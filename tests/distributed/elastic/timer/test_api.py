"""What clients and servers of timers share."""
from __future__ import annotations

import pytest

from flambeau.distributed.elastic import timer
from flambeau.distributed.elastic.timer import api


class Client(timer.TimerClient):
    def __init__(self):
        self.seen = []

    def acquire(self, scope_id, expiration_time):
        self.seen.append((scope_id, expiration_time))

    def release(self, scope_id):
        self.seen.append((scope_id, None))


class Queue(api.RequestQueue):
    def __init__(self, requests):
        self.requests, self.asked = requests, None

    def size(self):
        return len(self.requests)

    def get(self, size, timeout):
        self.asked = size, timeout
        return self.requests[:size]


class Server(timer.TimerServer):
    """Two workers whose time is over, of which one cannot be ended."""

    registered, cleared = (), None

    def register_timers(self, timer_requests):
        self.registered = timer_requests

    def clear_timers(self, worker_ids):
        self.cleared = worker_ids

    def get_expired_timers(self, deadline):
        return {r.worker_id: [r] for r in self.registered if r.expiration_time <= deadline}

    def _reap_worker(self, worker_id):
        if worker_id == "raises":
            raise OSError
        return worker_id != "stays"


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_scope_is_given_back(error):
    client = Client()
    try:
        with timer.expires(after=5, scope="step", client=client):
            if error:
                raise error
    except BaseException as raised:
        assert type(raised) is error
    assert [(scope, end is None) for scope, end in client.seen] == [("step", False),
                                                                  ("step", True)]


def test_the_place_is_the_scope(monkeypatch):
    client = Client()
    monkeypatch.setattr(api, "_timer_client", None)
    with (pytest.raises(RuntimeError, match="Configure timer client before using countdown"),
          timer.expires(1)):
        pass
    timer.configure(client)
    with timer.expires(1):
        pass
    assert client.seen[0][0].rsplit("#", 1)[1].isdigit() and len(client.seen) == 2


def test_requests_are_compared():
    request = timer.TimerRequest(1, "a", 2.0)
    assert request == timer.TimerRequest(1, "a", 2.0)
    for other in ((2, "a", 2.0), (1, "b", 2.0), (1, "a", 3.0)):
        assert request != timer.TimerRequest(*other)
    assert request != (1, "a", 2.0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(request)
    with pytest.raises(AttributeError):
        request.more = 1


def test_who_is_ended():
    queue = Queue([timer.TimerRequest(name, "scope", end) for name, end in (
        ("ended", 0), ("stays", 0), ("raises", 0), ("later", float("inf")))])
    server = Server(queue, 3)
    server._run_watchdog()
    assert queue.asked == (4, 3) and server.cleared == {"ended", "raises"}
    empty = Queue([])
    Server(empty, 3)._run_watchdog()
    assert empty.asked == (1, 3)            # it waits for one


def test_abstract():
    with pytest.raises(TypeError, match="abstract"):
        timer.TimerServer(Queue([]), 1)
    with pytest.raises(TypeError, match="abstract"):
        timer.TimerClient()
