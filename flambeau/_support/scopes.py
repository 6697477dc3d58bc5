"""Changes that hold for a while: modes, levels, hooks.

Ctrl-C may interrupt a program between any two of its instructions. With the extension a change is
made, and taken back, in one step that nothing interrupts; and a call under `restoring` that is
interrupted where it was about to leave a scope has left it all the same. Without the extension an
interrupt within the few instructions that enter or leave a scope may still come between.

    >>> from contextvars import ContextVar
    >>> depth, log = ContextVar("depth", default=0), []
    >>> class Deeper(Scope):
    ...     def _changes(self):
    ...         return (depth, depth.get() + 1), (log, self)
    >>> with Deeper():
    ...     depth.get(), len(log)
    (1, 1)
    >>> within(depth, 5, depth.get), inside(Deeper(), depth.get), depth.get(), log
    (5, 1, 0, [])
"""
from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from flambeau._support.source_locations import native


class _Scope:
    """A context manager that makes changes when it is entered, and takes them back.

    _changes    a tuple of changes, or a method that gives it: `(variable, value)` sets a
                ContextVar, `(list, item)` appends to a list, `(list, item, absent)` removes from
                it, `(dictionary, key, value)` sets an item, or removes it if that is `absent`
    _gives      what `__enter__` gives: by default, or if it is NotImplemented, the scope
    _has_left   called without arguments after it has been left
    _early      whether the changes are made as soon as there is an object, for good unless it is
                entered; `_take_back` takes them back
    """

    _changes: Any = ()
    _gives: Any = NotImplemented
    _has_left: Any = None
    _early: Any = False
    _record: Any = None                 # of changes that were made before it is entered

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any):
        if self._early and self._record is None:
            self._record = self._change()

    def _change(self) -> Any:
        changes = self._changes
        return apply_changes(changes if type(changes) is tuple else changes())

    def __enter__(self) -> Any:
        gives = self._gives
        try:
            record = self._change()
        except BaseException:
            self._take_back()
            raise
        if self._record is not None:
            record, self._record = self._record, None
        _thread.entered.append((self, record))
        return self if gives is NotImplemented else gives

    def __exit__(self, *exception: Any) -> None:
        entered = _thread.entered
        for i in reversed(range(len(entered))):
            if entered[i][0] is self:
                undo_changes(entered.pop(i)[1])
                break
        if self._has_left is not None:
            self._has_left()

    def _take_back(self) -> None:
        undo_changes(self._record or ())
        self._record = None

    def __getstate__(self) -> Any:
        return {k: v for k, v in self.__dict__.items() if k != "_record"}


class _Entered(threading.local):
    """What this thread has entered and not left."""

    def __init__(self) -> None:
        self.entered: list[tuple[_Scope, Any]] = []


_thread = _Entered()


def apply_changes(changes: Any) -> list[Any]:
    """Make changes; gives those that take them back."""
    record: list[Any] = []
    try:
        for what, item, *value in changes:
            if isinstance(what, ContextVar):
                record.append((what, what.get()))
                what.set(item)
            elif isinstance(what, list):
                record.append((what, item) if value else (what, item, absent))
                if value:
                    _remove(what, item)
                else:
                    what.append(item)
            else:
                record.append((what, item, what.get(item, absent)))
                if value[0] is absent:
                    what.pop(item, None)
                else:
                    what[item] = value[0]
    except BaseException:
        undo_changes(record)
        raise
    return record


def undo_changes(record: Any) -> None:
    """Take changes back, the last first."""
    for change in reversed(record):
        apply_changes([change])


def _remove(items: list[Any], item: Any) -> None:
    for i in reversed(range(len(items))):
        if items[i] is item:
            del items[i]
            break


def _leave_on_error(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function. If it fails, leave what it has entered and not left."""
    height = len(_thread.entered)
    try:
        return function(*args, **kwargs)
    except BaseException:
        _leave_scopes_above(height)
        raise


def _leave_afterwards(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, and leave what it has entered and not left, also if it has not failed."""
    height = len(_thread.entered)
    try:
        return function(*args, **kwargs)
    finally:
        _leave_scopes_above(height)


def _leave_scopes_above(height: int) -> None:
    while len(_thread.entered) > height:
        _thread.entered[-1][0].__exit__()


def _within(variable: ContextVar[Any], value: Any, function: Any, /, *args: Any,
            **kwargs: Any) -> Any:
    """Call a function while a variable has another value."""
    before = variable.get()
    try:
        variable.set(value)
        return _leave_on_error(function, *args, **kwargs)
    finally:
        variable.set(before)


def _inside(scope: _Scope, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function inside of a scope."""
    with scope:
        return _leave_on_error(function, *args, **kwargs)


def _locked(lock: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function while a lock is held."""
    with lock:
        return _leave_on_error(function, *args, **kwargs)


Scope: Any
if native is not None and hasattr(native, "Scope"):
    Scope, absent = native.Scope, native.absent
    restoring, enclosed = native.restoring, native.enclosed
    within, inside, locked = native.within, native.inside, native.locked
else:
    Scope, absent = _Scope, object()
    restoring, enclosed = _leave_on_error, _leave_afterwards
    within, inside, locked = _within, _inside, _locked
