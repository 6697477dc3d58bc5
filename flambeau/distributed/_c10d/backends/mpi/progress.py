"""Collectives as tasks, and who moves them on.

A task is a generator that yields what it waits for: requests, whose `Test()` says whether they are
done. Who waits for a task moves it on itself, without a change of threads, and with it all others
that have been started; a thread in the background does so for those that nobody waits for yet.
The tasks of one group run one after the other, those of several groups beside each other.
"""
from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

from flambeau._support.source_locations import Place
from flambeau.distributed._c10d.work import Work
from flambeau.futures import Future

Steps = Generator[Any, None, None]
_yield = getattr(os, "sched_yield", lambda: time.sleep(0))
_ROUNDS = 32                            # looks at the requests between looks at the clock
_AWAKE, _LONGEST = 0.002, 0.0005        # seconds of looking on end; the longest pause after that


class Owner:
    """What tasks belong to: a group. `obstacle` and `explain` know of the other members."""

    failed: BaseException | None = None

    def __init__(self) -> None:
        self.line: deque[Task] = deque()            # tasks that wait for the one before

    def obstacle(self, task: Task) -> tuple[float, str] | None:
        """Why a task cannot come to its end, and in how many seconds that is certain."""
        return None

    def title(self) -> str:
        """What messages about it begin with."""
        return ""

    def explain(self, task: Task) -> str:
        """Why a task may have come to a stop."""
        return ""


class Task(Work):
    """A collective, or a message, that is under way. `flowing` says that all processes are in it:
    what is waited for is data then, and is waited for without pauses."""

    def __init__(self, owner: Owner, steps: Callable[[Task], Steps], tensors: Any,
                 limit: timedelta, name: str):
        super().__init__(tensors, done=False, limit=limit)
        self.owner, self.name, self.flowing = owner, name, False
        self.number = 0                             # which of the owner's collectives it is
        self.partners: list[int] | None = None      # the members that it needs, if not all
        self.place = Place()
        self.seconds = limit.total_seconds()
        self.begun = 0.0                            # when it was its turn
        self.blocked = 0.0                          # when an obstacle was found
        self._steps = steps(self)
        self._request: Any = None

    def step(self) -> bool:
        """Go on as far as possible; is it at its end?"""
        try:
            while self._request is None or self._request.Test():
                self._request = next(self._steps)
        except StopIteration:
            return True
        except Exception as error:
            self._error = error
            return True
        return False

    def wait(self, timeout: timedelta | None = timedelta(0)) -> bool:
        """Wait until it is done; raises what it has failed with."""
        if not self._done:
            seconds = timeout.total_seconds() if timeout else None
            if not progress.run_until(self, seconds):
                raise RuntimeError(f"Timed out waiting {round((seconds or 0) * 1000)}ms for "
                                   f"{self.name} operation to complete")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Is it done?"""
        if not self._done:
            progress.look()
        return self._done

    def get_future(self) -> Future:
        """A future of the tensors that it writes: who waits for it moves the task on."""
        future = super().get_future()
        if not self._done:
            future._bring_about = self._move_on
        return future

    def _move_on(self) -> None:
        progress.run_until(self, None)


class Progress:
    """The tasks of this process that have been started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()               # held while tasks are moved on
        self._active: list[Task] = []
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def submit(self, task: Task, in_line: bool, waited_for: bool) -> None:
        """Start a task, after those of its owner that are `in_line`; unless it is going to be
        waited for at once, somebody has to look after it."""
        with self._lock:
            if in_line:
                task.owner.line.append(task)
            done = self._begin(task) if not in_line or task.owner.line[0] is task else []
        self._finish(done)
        if not waited_for and not task._done:
            self._look_after()

    def _begin(self, task: Task) -> list[Task]:
        """Begin a task; those that are at their end at once, with what was behind it in line."""
        return [] if self._goes_on(task) else self._retired(task)

    def _goes_on(self, task: Task) -> bool:
        """Begin a task; is it under way?"""
        task.begun = time.monotonic()
        if task.owner.failed is not None:
            task._error = RuntimeError(f"{task.name}: the process group has failed before: "
                                       f"{task.owner.failed}")
        elif not task.step():
            self._active.append(task)
            return True
        return False

    def _retired(self, task: Task) -> list[Task]:
        """The tasks that are at their end with this one: those behind it in line are begun, up to
        one that has to wait."""
        if task in self._active:
            self._active.remove(task)
        found, line = [task], task.owner.line
        if line and line[0] is task:
            line.popleft()
            while line and not self._goes_on(line[0]):
                found.append(line.popleft())
        return found

    def _finish(self, tasks: list[Task]) -> None:
        """Tell those who wait; what they run then may start tasks, so the lock is not held."""
        for task in tasks:
            task._finish(task._error)

    def _look(self, rounds: int) -> list[Task]:
        """Move all tasks on; those that are done."""
        active = self._active
        for i in range(rounds):
            for task in active:
                if task.step():
                    return self._retired(task)
            if i & 7 == 7:
                _yield()                            # others may need this core to go on
        return self._overdue()

    def _overdue(self) -> list[Task]:
        """Tasks that have taken too long, or cannot come to their end."""
        now = time.monotonic()
        for task in self._active:
            obstacle = task.owner.obstacle(task)
            task.blocked = (task.blocked or now) if obstacle else 0.0
            if obstacle and now - task.blocked > obstacle[0]:
                return self._fail(task, obstacle[1])
            if now - task.begun > task.seconds:
                return self._fail(task, f"{task.owner.title()}Timed out waiting "
                                  f"{round(task.seconds * 1000)}ms for {task.name} operation to "
                                  "complete", explain=True)
        return []

    def _fail(self, task: Task, message: str, explain: bool = False) -> list[Task]:
        if explain:
            message += task.owner.explain(task)
        task._error = RuntimeError(message)
        task.owner.failed = task._error             # what is on its way is of this task still
        _abandoned.append(task)                     # its buffers may be written to
        return self._retired(task)

    def has_tasks_of(self, owner: Owner) -> bool:
        """Is something of this owner under way?"""
        return any(task.owner is owner for task in self._active)

    def look(self) -> None:
        """Move on what can be moved on now."""
        if self._lock.acquire(blocking=False):
            try:
                done = self._look(1)
            finally:
                self._lock.release()
            self._finish(done)

    def run_until(self, task: Task, seconds: float | None) -> bool:
        """Move tasks on until this one is done; was it in time?"""
        end = None if seconds is None else time.monotonic() + seconds
        pause, since = 0.0, 0.0
        while not task._done:
            if not self._lock.acquire(timeout=0.001):
                continue
            try:
                done = self._look(_ROUNDS) if not task._done else []
            finally:
                self._lock.release()
            if done:
                self._finish(done)
                since = 0.0
                continue
            now = time.monotonic()
            if end is not None and now > end:
                return task._done
            since = since or now
            pause = 0.0 if task.flowing or now - since < _AWAKE else \
                min(max(pause * 1.5, 2e-5), _LONGEST)
            if pause:
                time.sleep(pause)
        return True

    # ---- in the background ----------------------------------------------------------------------

    def _look_after(self) -> None:
        if self._thread is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")
            self._thread.start()
        if not self._wanted.is_set():
            self._wanted.set()

    def _watch(self) -> None:
        pause = 1e-4
        while True:
            self._wanted.wait()
            self._wanted.clear()
            while self._active:
                time.sleep(pause)
                if self._lock.acquire(timeout=0.05):
                    try:
                        done = self._look(_ROUNDS)
                    finally:
                        self._lock.release()
                    self._finish(done)
                    pause = 1e-4 if done else min(pause * 1.2, 2e-3)
            pause = 1e-4


_abandoned: list[Task] = []
progress = Progress()
