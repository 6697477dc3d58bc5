"""Messages between agents."""
from __future__ import annotations

import socket
import threading
import time

import pytest

import flambeau as torch
from flambeau.distributed.rpc import wire


def there_and_back(head, tensors):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = threading.Thread(target=wire._write, args=(ours, threading.Lock(), head, tensors))
        thread.start()
        found = wire._read(theirs)
        thread.join(10)
    return found


@pytest.mark.parametrize("tensor", [
    torch.arange(6.).view(2, 3), torch.arange(6.).view(2, 3).t(), torch.tensor(3),
    torch.zeros(0, 2), torch.tensor([True]), torch.tensor([1 + 2j]),
    torch.ones(2, dtype=torch.bfloat16),
    torch.ones(3).expand(2, 3), torch.arange(8)[::2]], ids=lambda t: f"{t.dtype} {t.shape}")
def test_tensors(tensor):
    head, (found,) = there_and_back({"a": 1}, [tensor])
    assert head == {"a": 1} and found.dtype is tensor.dtype and torch.equal(found, tensor)
    if 0 not in tensor.stride():
        assert found.stride() == tensor.stride()


def test_gradients_are_asked_for_again():
    leaf = torch.ones(1, requires_grad=True)
    _, (found, other) = there_and_back(None, [leaf, leaf * 2])
    assert found.requires_grad and found.is_leaf and not other.requires_grad


def test_a_connection_that_ends():
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(b"123")
        ours.close()
        with pytest.raises(EOFError):
            wire._read(theirs)


def test_time_is_over():
    seen = []
    deadlines = wire._Deadlines(lambda number, seconds: seen.append((number, seconds)))
    for number, seconds in ((1, 60), (2, 0.03), (3, 0.01)):
        deadlines.add(number, seconds)
    end = time.monotonic() + 10
    while len(seen) < 2 and time.monotonic() < end:
        time.sleep(0.005)
    deadlines.stop()
    assert seen == [(3, 0.01), (2, 0.03)]
