"""Timers: workers whose time is over are ended."""
from __future__ import annotations

import queue
import signal
import subprocess
import sys
import time

import pytest

from flambeau.distributed.elastic import timer
from flambeau.distributed.elastic.timer import FileTimerClient, FileTimerRequest, FileTimerServer


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-Sc", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_a_timer_is_acquired_and_released():
    requests = queue.Queue()
    with timer.expires(after=5, scope="step", client=timer.LocalTimerClient(requests)):
        assert requests.get().expiration_time == pytest.approx(time.time() + 5, abs=1)
    assert requests.get().expiration_time == -1
    with (pytest.raises(RuntimeError, match="Configure timer client before using countdown"),
          timer.expires(1)):
        pass


def test_a_queue_of_timers(sleeper):
    requests = queue.Queue()
    server = timer.LocalTimerServer(requests, max_interval=0.01)
    requests.put(timer.TimerRequest(sleeper.pid, "later", time.time() + 60))
    server._run_watchdog()
    assert sleeper.poll() is None and len(server._timers) == 1
    requests.put(timer.TimerRequest(sleeper.pid, "over", time.time() - 1))
    server._run_watchdog()
    assert sleeper.wait(10) == -signal.SIGKILL and not server._timers


def test_a_pipe_of_timers(tmp_path, sleeper):
    path, events = str(tmp_path / "pipe"), []
    server = FileTimerServer(path, "run", max_interval=0.01,
                             log_event=lambda name, request: events.append(name))
    with pytest.raises(BrokenPipeError, match="FileTimerServer is not available"):
        FileTimerClient(path).acquire("nobody reads", 0)
    server.start()
    deadline = time.monotonic() + 10
    client = FileTimerClient(path, signal.SIGTERM)
    while time.monotonic() < deadline:
        try:
            client.acquire("mine", time.time() + 60)
            break
        except BrokenPipeError:
            pass                            # the server is about to open it
    client.release("mine")
    client._send_request(FileTimerRequest(sleeper.pid, "over", time.time() - 1, signal.SIGTERM))
    assert sleeper.wait(10) == -signal.SIGTERM
    server.stop()
    assert "kill worker process" in events and not (tmp_path / "pipe").exists()
