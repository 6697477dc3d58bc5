"""Timers through a queue."""
from __future__ import annotations

import queue
import signal
import subprocess
import sys
import time

import pytest

from flambeau.distributed.elastic import timer
from flambeau.distributed.elastic.timer.local_timer import MultiprocessingRequestQueue


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


def test_a_queue_of_timers(sleeper):
    requests = queue.Queue()
    server = timer.LocalTimerServer(requests, max_interval=0.01)
    requests.put(timer.TimerRequest(sleeper.pid, "later", time.time() + 60))
    server._run_watchdog()
    assert sleeper.poll() is None and len(server._timers) == 1
    requests.put(timer.TimerRequest(sleeper.pid, "over", time.time() - 1))
    server._run_watchdog()
    assert sleeper.wait(10) == -signal.SIGKILL and not server._timers


def test_reading_a_queue():
    requests = queue.Queue()
    reader = MultiprocessingRequestQueue(requests)
    assert reader.size() == 0 and reader.get(2, 0.001) == []
    for i in range(3):
        requests.put(i)
    assert reader.size() == 3
    assert reader.get(2, 1) == [0, 1] and reader.get(2, 0.001) == [2]


def test_which_timers_are_over():
    server = timer.LocalTimerServer(queue.Queue())
    requests = [timer.TimerRequest(1, "a", 5), timer.TimerRequest(1, "b", 7),
                timer.TimerRequest(2, "a", 6)]
    server.register_timers(requests)
    assert server.get_expired_timers(4) == {}
    assert server.get_expired_timers(6) == {1: [requests[0]], 2: [requests[2]]}
    assert server.get_expired_timers(7) == {1: requests[:2], 2: [requests[2]]}
    server.register_timers([timer.TimerRequest(1, "a", -1), timer.TimerRequest(9, "a", -1)])
    assert server.get_expired_timers(9) == {1: [requests[1]], 2: [requests[2]]}
    server.register_timers([timer.TimerRequest(1, "b", 8)])
    assert server.get_expired_timers(7) == {2: [requests[2]]}
    server.clear_timers({2})
    assert list(server.get_expired_timers(9)) == [1]


def test_a_process_that_is_gone_is_ended(sleeper):
    sleeper.kill()
    sleeper.wait()
    assert timer.LocalTimerServer(queue.Queue())._reap_worker(sleeper.pid)
