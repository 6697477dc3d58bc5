"""Values that are not there yet.

>>> future = Future()
>>> doubled = future.then(lambda done: 2 * done.value())
>>> future.set_result(21)
>>> doubled.wait()
42
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import flambeau
from flambeau._support.c_functions import incompatible
from flambeau._support.devices.streams import on_cpu

T = TypeVar("T")
S = TypeVar("S")
Callback = Callable[[], Any]            # may give a `_Next`: what is to be run after it


class _Next(list[Callback]):
    """The callbacks of a future that another one's callback has completed. They are given back to
    who runs callbacks, so that a long chain of futures needs no deep stack."""


def _run(callbacks: list[Callback]) -> None:
    """Run callbacks in their order, and what each of them sets off before the next."""
    waiting = callbacks[::-1]
    while waiting:
        more = waiting.pop()()
        if isinstance(more, _Next):
            waiting.extend(reversed(more))


class Future(Generic[T]):
    """A value that another thread sets, or the error that came instead.

    `devices` names what devices the value may be on; on the CPU there is nothing to name.
    """

    def __init__(self, *, devices: list[Any] | None = None):
        for device in () if devices is None else devices:
            if flambeau.device(device).index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
            on_cpu(device)
        self._condition = threading.Condition()
        self._failed = False            # at once for those that wait for this among others
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks = _Next()
        self._bring_about: Callable[[], None] | None = None     # what who waits may do meanwhile

    def __repr__(self) -> str:
        return f"<torch.jit.Future object at {id(self):#x}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Is the value, or the error, there?"""
        return self._done

    def wait(self) -> T:
        """The value, as soon as it is there; raises the error if that came instead."""
        if self._bring_about is not None and not self._done:
            self._bring_about()
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The value, which has to be there; raises the error if that came instead."""
        if not self._done:
            raise RuntimeError("completed() INTERNAL ASSERT FAILED: the value of this Future is "
                               "not there yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: T) -> None:
        """Set the value, and run what waits for it."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error in place of the value."""
        assert isinstance(result, Exception), (
            f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _fail(self, error: BaseException) -> None:
        """Set an error that also `collect_all` gives as soon as it is there."""
        self._failed = True
        self._complete(None, error)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        _run(self._settle(value, error))

    def _settle(self, value: Any, error: BaseException | None) -> _Next:
        """Set the value or the error; what is to be run then."""
        with self._condition:
            if self._done:
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note "
                                   "that a Future can only be marked completed once.")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, _Next()
            self._condition.notify_all()
        return callbacks

    def _when_done(self, callback: Callback) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        _run([callback])

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of `callback(self)`, which runs when this one is done."""
        _check_callback("then", callback, "torch._C.Future", self)
        result: Future[S] = Future()
        result._bring_about = self._bring_about

        def run() -> _Next:
            try:
                value = callback(self)
            except Exception as error:
                message = ("Got the following error when running the callback: "
                           f"{type(error).__name__}: {error}")
                failure = RuntimeError(message)
                failure.__cause__ = error
                return result._settle(None, failure)
            return result._settle(value, None)
        self._when_done(run)
        return result

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Run `callback(self)` when this future is done; its errors are printed."""
        _check_callback("add_done_callback", callback, "None", self)

        def run() -> None:
            try:
                callback(self)
            except Exception:
                import traceback
                traceback.print_exc()
        self._when_done(run)


def _check_callback(name: str, callback: Any, gives: str, future: Future[Any]) -> None:
    if not callable(callback):
        raise incompatible(name, [f"(self: torch._C.Future, arg0: collections.abc.Callable) -> "
                                  f"{gives}"], (future, callback), {})


def _completed(value: T) -> Future[T]:
    """A future that has its value already."""
    future: Future[T] = Future()
    future.set_result(value)
    return future


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """A future of the list of `futures`, done when all of them are, or when a call in another
    process has failed.

    >>> first, second = Future(), Future()
    >>> both = collect_all([first, second])
    >>> first.set_result(1), both.done()
    (None, False)
    >>> second.set_result(2)
    >>> [f.value() for f in both.wait()]
    [1, 2]
    """
    if not isinstance(futures, Sequence) or any(not isinstance(f, Future) for f in futures):
        raise incompatible("_collect_all", ["(arg0: collections.abc.Sequence[torch._C.Future]) -> "
                                            "torch._C.Future"], (futures,), {})
    result: Future[list[Future]] = Future()
    lock, missing = threading.Lock(), len(futures)

    def count(future: Future) -> _Next | None:
        nonlocal missing
        with lock:
            missing = 0 if future._failed and missing > 0 else missing - 1
            last = missing == 0
        if not last:
            return None
        failed = next((f._error for f in futures if f._error is not None), None)
        return result._settle(None if failed else list(futures), failed)
    if not futures:
        result.set_result([])
    for future in futures:
        future._when_done(partial(count, future))
    return result


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all `futures`; raises the error of the first that has one."""
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
