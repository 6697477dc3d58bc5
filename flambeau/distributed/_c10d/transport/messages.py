"""Messages between two processes over TCP: tensors as bytes, and how they are handed over.

A message begins with what it is. A small one holds its elements too; others follow when the
receiver asks for them, so that nothing piles up where it is not wanted yet.
"""
from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.source_locations import Place
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.refusals import place_in_words
from flambeau.distributed._c10d.transport.connections import Receipt
from flambeau.distributed._c10d.work import Work

_INLINE = 1 << 16                       # bytes that are sent with what they are
_numbers = itertools.count()


def as_bytes(tensor: Tensor) -> memoryview:
    """The values of a tensor, in order."""
    plain = tensor.detach().contiguous().reshape(-1)
    if not plain.numel():
        return memoryview(b"")
    return memoryview(plain.view(flambeau.uint8).numpy())


def of_bytes(data: bytearray, like: Tensor) -> Tensor:
    """A flat tensor of these bytes."""
    if not data:
        return flambeau.empty(0, dtype=like.dtype)
    return flambeau.frombuffer(data, dtype=flambeau.uint8).view(like.dtype)


def _key(group: Any, tag: int) -> bytes:
    return f"{group.group_name}:p2p:{tag}".encode()


def _part(group: Any, number: int, what: str) -> bytes:
    return f"{group.group_name}:{what}:{number}".encode()


def send_message(group: Any, tensors: list[Tensor], to: int, tag: int) -> Work:
    """Send tensors to a member of a group."""
    work = Work(tensors, done=False, limit=group.options._timeout)
    seconds, other = group.options._timeout.total_seconds(), group.ranks[to]
    where = place_in_words(Place())
    left = [len(tensors)]

    def done(error: BaseException | None = None) -> None:
        left[0] -= 1
        if (error is not None or not left[0]) and not work._done:
            work._finish(error)

    def told(tensor: Tensor, data: memoryview, number: int) -> None:
        """Say what comes, and send it when it is asked for."""
        about = (str(tensor.dtype), list(tensor.shape), number, where)
        body = pickle.dumps((*about, bytes(data) if number < 0 else b""))
        def go(receipt: Receipt) -> None:
            """The receiver wants it, or says why not."""
            error = receipt.error or (RuntimeError(receipt.body.decode()) if receipt.body else None)
            if error is not None:
                done(error)
            else:
                group._in_background(lambda: _attempt(lambda: group.peers.send(
                    other, _part(group, number, "part"), data, seconds), done, True))
        if number >= 0:
            group.peers.expect([other], _part(group, number, "go"), go)
        _attempt(lambda: group.peers.send(other, _key(group, tag), body, seconds), done,
                 number < 0)
    for tensor in tensors:
        data = as_bytes(tensor)
        number = next(_numbers) if len(data) > _INLINE else -1
        held = memoryview(bytes(data)) if number < 0 else data      # it may be written to at once
        group._in_background(lambda tensor=tensor, data=held, number=number:
                             told(tensor, data, number))
    return work


def _attempt(call: Callable[[], None], done: Callable[..., None], last: bool) -> None:
    try:
        call()
    except Exception as error:
        done(error)
        return
    if last:
        done()


def receive_message(group: Any, tensors: list[Tensor], sources: list[int], tag: int) -> Work:
    """Receive tensors from one of some members of a group."""
    work = Work(tensors, done=False, limit=group.options._timeout)
    waiting, left = list(tensors), [len(tensors)]
    receiver = f"rank {group.ranks[group.rank()]}{place_in_words(Place())}"

    def done(error: BaseException | None) -> None:
        left[0] -= 1
        if (error is not None or not left[0]) and not work._done:
            work._finish(error)

    def begun(receipt: Receipt) -> None:
        if receipt.error is not None:
            done(receipt.error)
            return
        tensor = waiting.pop(0)
        dtype, shape, number, where, data = pickle.loads(bytes(receipt.body))
        source = receipt.source
        work._source = group.ranks.index(source)
        misfit = checks.misfit(tensor, receiver, dtype, shape, f"rank {source}{where}")
        if misfit:
            done(RuntimeError(misfit))
        if number < 0:
            if misfit:
                group.peers.report_misfit(source, group.group_name, 0, misfit)
            else:
                done(_kept(tensor, bytearray(data)))
            return
        if not misfit:
            group.peers.expect([source], _part(group, number, "part"), lambda part: done(
                part.error or _kept(tensor, part.body)))
        group._in_background(lambda: _attempt(lambda: group.peers.send(
            source, _part(group, number, "go"), misfit.encode()), done, False))
    for _ in tensors:
        group.peers.expect([group.ranks[s] for s in sources], _key(group, tag), begun)
    return work


def _kept(tensor: Tensor, data: bytearray) -> BaseException | None:
    """Put what has arrived into a tensor; why that cannot be done."""
    try:
        with flambeau.no_grad():
            tensor.copy_(of_bytes(data, tensor).view(tensor.shape))
    except Exception as error:
        return error
    return None
