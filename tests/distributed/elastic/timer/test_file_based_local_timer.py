"""Timers through a pipe."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from flambeau.distributed.elastic.timer import FileTimerClient, FileTimerRequest, FileTimerServer


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-Sc", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def killed(monkeypatch):
    """The processes that are sent signals, which none of them hears."""
    found, kill = [], os.kill
    monkeypatch.setattr(os, "kill", lambda pid, number: (
        found.append((pid, number)) if number else kill(pid, number)))
    return found


def acquired(client, *args):
    """Ask, as soon as the server listens."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            return client.acquire(*args)
        except BrokenPipeError:
            time.sleep(0.01)


def test_a_pipe_of_timers(tmp_path, sleeper, killed):
    path, events = str(tmp_path / "pipe"), []
    server = FileTimerServer(path, "run", max_interval=0.01, log_event=lambda name, request:
                             events.append((name, request and request.scope_id)))
    server.start()
    client = FileTimerClient(path, signal.SIGTERM)
    acquired(client, "mine", time.time() - 1)
    for scope, end, number in (("over", 1, signal.SIGINT), ("first", 0, 0), ("last", 2, 9)):
        client._send_request(FileTimerRequest(sleeper.pid, scope, end, number))
    client.release("mine")
    deadline = time.monotonic() + 10
    while not killed and time.monotonic() < deadline:
        time.sleep(0.01)
    server.stop()
    assert ("kill worker process", "over") in events or ("kill worker process", "mine") in events
    assert events[0] == ("watchdog started", None) and events[-1] == ("watchdog stopped", None)
    assert not (tmp_path / "pipe").exists()


def test_workers_end_and_so_does_the_server(tmp_path, sleeper, killed):
    events = []
    server = FileTimerServer(str(tmp_path / "pipe"), "run", max_interval=0.01,
                             log_event=lambda name, request: events.append(name))
    server.register_timers([FileTimerRequest(sleeper.pid, scope, end, number) for scope, end, number
                            in (("third", 3, 9), ("first", 1, 0), ("second", 2, 15))])
    with open(os.devnull) as nothing:
        server._run_watchdog(nothing)
        assert killed == [(sleeper.pid, 15), (os.getpid(), 15)]
        assert events == ["timer expired", "timer expired", "kill worker process"]
        server.register_timers([FileTimerRequest(sleeper.pid, "no signal", 1)])
        server._run_watchdog(nothing)
    assert len(killed) == 2 and not server._timers
    server.stop()


def test_one_more_look(tmp_path, killed):
    path = str(tmp_path / "pipe")
    server = FileTimerServer(path, "run", max_interval=0.2)
    server.start()
    client = FileTimerClient(path, signal.SIGTERM)
    acquired(client, "over", time.time() - 1)
    client.acquire("later", time.time() + 60)
    server.run_once()
    assert killed == [(os.getpid(), 15)] * 2
    assert not os.path.exists(path)


def test_nobody_reads(tmp_path):
    with pytest.raises(BrokenPipeError, match="FileTimerServer is not available"):
        FileTimerClient(str(tmp_path / "none")).acquire("a", 0)


def test_requests_are_lines():
    request = FileTimerRequest(3, "step", 1.5, signal.SIGTERM)
    assert json.loads(request.to_json()) == {
        "version": 1, "pid": 3, "scope_id": "step", "expiration_time": 1.5, "signal": 15}
    assert request == FileTimerRequest(3, "step", 1.5, 15)
    assert request != FileTimerRequest(3, "step", 1.5) and request.worker_pid == 3
    assert FileTimerRequest(3, "step", 1.5).signal == 0


def test_long_requests(tmp_path):
    path = str(tmp_path / "pipe")
    server = FileTimerServer(path, "run", max_interval=0.01)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        with pytest.raises(RuntimeError, match="larger than 4096 bytes is not supported"):
            FileTimerClient(path).acquire("x" * 5000, 1.0)
    finally:
        os.close(reader)
        server.stop()


def test_a_pipe_replaces_a_file(tmp_path):
    path = tmp_path / "pipe"
    path.write_text("old")
    server = FileTimerServer(str(path), "run", max_interval=0.01)
    assert path.is_fifo()
    server.stop()
    assert not path.exists()


def test_which_timers_are_over(tmp_path):
    server = FileTimerServer(str(tmp_path / "pipe"), "run", max_interval=0.01)
    mine, other = os.getpid(), os.getppid()
    requests = [FileTimerRequest(mine, "a", 5), FileTimerRequest(mine, "b", 7),
                FileTimerRequest(other, "a", 6), FileTimerRequest(2 ** 22 + 1, "a", 6.5)]
    assert server.get_last_progress_time() == pytest.approx(time.time(), abs=2)
    server.register_timers(requests)
    assert server.get_expired_timers(6) == {mine: [requests[0]], other: [requests[2]]}
    server.register_timers([FileTimerRequest(mine, "a", -1)])
    assert len(server.get_expired_timers(9)) == 3
    server.clear_timers({other})                        # and of what is no process
    assert server.get_expired_timers(9) == {mine: [requests[1]]}
    server.stop()


def test_processes(sleeper, tmp_path):
    assert FileTimerServer.is_process_running(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert not FileTimerServer.is_process_running(sleeper.pid)
    server = FileTimerServer(str(tmp_path / "pipe"), "run")
    assert server._reap_worker(sleeper.pid, signal.SIGTERM)
