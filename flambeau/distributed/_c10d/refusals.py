"""What a process tells the others when its own call goes wrong, so that they need not wait.

A collective that one process refuses (a wrong type, a list of the wrong length) never begins, and
the others would wait for it until their time is over. So who refuses a call says so, over the
connections of the group; if it goes on with another call after all, that takes the word back.
Those who have refused as many calls themselves at this point go on as if nothing had been.

A message that does not fit is known to its receiver alone, which tells the sender. A sender that
waits for the message to be taken raises; one that has gone on raises at its next call.
"""
from __future__ import annotations

import functools
import inspect
import json
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from flambeau._support.source_locations import Place, read_place
from flambeau.distributed._c10d.transport.connections import Peers
from flambeau.distributed._c10d.world import resolve

PATIENCE = 1.0                          # seconds for a process to go on with another call
_PATH = 200                             # characters of a path in messages
_P = ParamSpec("_P")
_T = TypeVar("_T")


def place_in_words(place: Any) -> str:
    """` at FILE:LINE`; of a long path the end."""
    at = read_place(place)
    if at is None:
        return ""
    path = str(getattr(at[0], "co_filename", None))
    return f" at {path if len(path) <= _PATH else '…' + path[-_PATH:]}:{at[1]}"


def announced(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """A decorator of collectives: the other processes learn that this one has refused its call."""
    @functools.wraps(call)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            if not getattr(error, "_is_known_to_all", False):
                error._is_known_to_all = True           # type: ignore[attr-defined]
                _announce(call, args, kwargs, error)
            raise
    return checked


def _announce(call: Callable[..., Any], args: Any, kwargs: Any, error: Exception) -> None:
    try:
        given = inspect.signature(call).bind_partial(*args, **kwargs).arguments
        group = resolve(given.get("group"))
        backend = None if group is None else group._default_backend()
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return                          # no group is known that the call would have been of
    if isinstance(backend, Refusing):
        backend.refuse(f"{call.__name__}{place_in_words(Place())}: {type(error).__name__}: {error}")


class Refusing:
    """A group over `peers`: its `ranks` are the members' numbers there."""

    peers: Peers
    ranks: list[int]
    group_name: str
    _rank: int

    def __init__(self) -> None:
        self.started = 0                            # collectives of this group
        self._refused = (0, 0)                      # before which collective, how many calls
        self._is_refusing = False
        self.notices: dict[tuple[int, int], str] = {}       # by receiver and message

    # ---- collectives ----------------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """Tell the other members that this process does not come to the next collective."""
        number, count = self._refused
        self._refused = (self.started + 1, count + 1 if number == self.started + 1 else 1)
        self._is_refusing = True
        self._tell(self._refused, reason)

    def _tell(self, refused: tuple[int, int], reason: str) -> None:
        body = json.dumps([self.group_name, *refused, reason]).encode()
        for rank in self.ranks:
            if rank != self.ranks[self._rank]:
                self.peers.tell(rank, b"?refused", body)

    def begin(self) -> int:
        """Number the next collective, whose call is not refused."""
        if self.notices:
            self._raise_notice(next(iter(self.notices)))
        if self._is_refusing:
            self._is_refusing = False
            self._tell((0, 0), "")
        self.started += 1
        return self.started

    def refusal(self, number: int) -> str:
        """Why a member does not come to the collective of that number: "" if nothing is known."""
        refused = self.peers.refused
        if not refused:
            return ""
        own_number, own_count = self._refused
        for rank in self.ranks:
            at, count, reason = refused.get((rank, self.group_name), (0, 0, ""))
            if 0 < at <= number and count > (own_count if own_number == at else 0):
                return f"rank {rank} has refused its call of {reason}"
        return ""

    # ---- messages -------------------------------------------------------------------------------

    def check_notices(self, to: int | None = None, message: int = 0) -> None:
        """Raise if a message did not fit at its receiver: this one, or any."""
        if self.notices:
            if to is None:
                self._raise_notice(next(iter(self.notices)))
            if (self.ranks[to], message) in self.notices:
                self._raise_notice((self.ranks[to], message))

    def _raise_notice(self, key: tuple[int, int]) -> None:
        raise RuntimeError(self.notices.pop(key))

    def warn_of_notices(self) -> None:
        """Say what nobody has been told of: the group ends."""
        for text in self.notices.values():
            warnings.warn(text, stacklevel=4)
        self.notices = {}
