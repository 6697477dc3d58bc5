"""Tasks that are moved on by those who wait for them."""
from __future__ import annotations

import time
from datetime import timedelta

import pytest

from flambeau.distributed._c10d.backends.mpi.progress import Owner, Progress, Task, progress

SECOND = timedelta(seconds=1)


class Request:
    """Is done after that many looks, or never."""

    def __init__(self, looks):
        self.looks = looks

    def Test(self):
        self.looks -= 1
        return self.looks < 0


def task(owner, log, name, *looks, limit=SECOND, error=None):
    def steps(task):
        for i, count in enumerate(looks):
            log.append(f"{name}{i}")
            yield Request(count)
        if error is not None:
            raise error
        log.append(f"{name} end")
    return Task(owner, steps, [name], limit, name)


def test_who_waits_moves_on():
    owner, log = Owner(), []
    made = task(owner, log, "a", 3, 200)
    progress.submit(made, True, True)
    assert log == ["a0"] and not made._done
    assert made.wait() and made.result() == ["a"] and log == ["a0", "a1", "a end"]


def test_tasks_of_one_owner_run_in_line():
    one, other, log = Owner(), Owner(), []
    tasks = [task(one, log, "a", 300), task(one, log, "b", 0), task(other, log, "c", 0)]
    for made in tasks:
        progress.submit(made, True, True)
    assert log == ["a0", "c0", "c end"] or log == ["a0", "c0"]
    tasks[1].wait()
    assert log.index("a end") < log.index("b0") and tasks[0]._done


def test_messages_do_not_stand_in_line():
    owner, log = Owner(), []
    blocked, message = task(owner, log, "a", 10 ** 9), task(owner, log, "m", 2)
    progress.submit(blocked, True, True)
    progress.submit(message, False, True)
    assert message.wait() and not blocked._done and progress.has_tasks_of(owner)
    blocked._request.looks = 0
    assert blocked.wait() and not progress.has_tasks_of(owner)


def test_an_error_is_that_of_the_task():
    made = task(Owner(), [], "a", 0, error=ValueError("mine"))
    progress.submit(made, True, True)
    with pytest.raises(ValueError, match="mine"):
        made.wait()
    assert made.is_completed() and not made.is_success()


def test_time_is_over():
    owner, log = Owner(), []
    made = task(owner, log, "a", 10 ** 9, limit=timedelta(milliseconds=30))
    behind = task(owner, log, "b", 0)
    for each in (made, behind):
        progress.submit(each, True, True)
    with pytest.raises(RuntimeError, match="Timed out waiting 30ms for a operation to complete"):
        made.wait()
    with pytest.raises(RuntimeError, match="b: the process group has failed before: Timed out"):
        behind.wait()


def test_a_wait_may_be_shorter():
    owner = Owner()
    made = task(owner, [], "a", 10 ** 9)
    progress.submit(made, True, True)
    with pytest.raises(RuntimeError, match="Timed out waiting 20ms for a operation to complete"):
        made.wait(timedelta(milliseconds=20))
    made._request.looks = 0
    assert made.wait()


def test_an_obstacle_ends_a_task():
    class Broken(Owner):
        def obstacle(self, task):
            return 0.01, "rank 3 has gone"
    made = task(Broken(), [], "a", 10 ** 9)
    progress.submit(made, True, True)
    with pytest.raises(RuntimeError, match="rank 3 has gone"):
        made.wait()


def test_nobody_has_to_wait():
    own = Progress()
    made = task(Owner(), [], "a", 5)
    own.submit(made, True, False)
    end = time.monotonic() + 10
    while not made._done and time.monotonic() < end:
        time.sleep(0.001)
    assert made._done


def test_a_future_moves_the_task_on():
    made = task(Owner(), [], "a", 5)
    progress.submit(made, True, True)
    assert made.get_future().then(lambda done: done.value() * 2).wait() == ["a", "a"]
