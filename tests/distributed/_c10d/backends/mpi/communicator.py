"""Communicators of several ranks in one thread, in place of MPI's: what `moves` of the
backend needs of one."""
from __future__ import annotations

from collections import defaultdict, deque

import numpy as np


class Request:
    def __init__(self, array=None):
        self.array, self.done = array, array is None

    def take(self, data):
        self.array.view(np.uint8)[:data.size] = data
        self.done = True

    def Test(self):
        return self.done


class Boxes:
    """What has been sent and not received, and who waits, in order."""

    def __init__(self):
        self.sent, self.waiting = defaultdict(deque), defaultdict(deque)


class Communicator:
    """The end of one rank; `boxes` are shared by all."""

    def __init__(self, boxes, rank, size):
        self.boxes, self.rank, self.size = boxes, rank, size

    def Isend(self, data, to, tag):
        key, copy = (self.rank, to, tag), data[0].view(np.uint8).copy()
        if self.boxes.waiting[key]:
            self.boxes.waiting[key].popleft().take(copy)
        else:
            self.boxes.sent[key].append(copy)
        return Request()

    def Irecv(self, data, source, tag):
        key, request = (source, self.rank, tag), Request(data[0])
        if self.boxes.sent[key]:
            request.take(self.boxes.sent[key].popleft())
        else:
            self.boxes.waiting[key].append(request)
        return request

    def Ibcast(self, data, root):
        if self.rank == root:
            for to in range(self.size):
                self.Isend(data, to, "bcast")
            return Request()
        return self.Irecv(data, root, "bcast")


def communicators(size):
    boxes = Boxes()
    return [Communicator(boxes, rank, size) for rank in range(size)]


def run(*generators):
    """Move generators of requests on in turn, until all are at their end."""
    waiting = dict.fromkeys(range(len(generators)))
    for _ in range(10_000):
        for i in list(waiting):
            if waiting[i] is None or waiting[i].Test():
                try:
                    waiting[i] = next(generators[i])
                except StopIteration:
                    del waiting[i]
        if not waiting:
            return
    raise AssertionError(f"{sorted(waiting)} wait for ever")
