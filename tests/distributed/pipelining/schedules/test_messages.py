"""Messages that are started together."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed.pipelining.schedules import messages
from flambeau.distributed.pipelining.schedules.messages import (
    _batch_p2p,
    _sorted_batch_p2p,
    _wait_batch_p2p,
)


class Op:
    def __init__(self, peer, name):
        self.peer, self.name = peer, name


class Done:
    waited = 0

    def wait(self):
        self.waited += 1


@pytest.fixture
def started(monkeypatch):
    batches = []

    def start(ops):
        batches.append([op.name for op in ops])
        return [Done() for _ in ops]
    monkeypatch.setattr(dist, "batch_isend_irecv", start)
    assert messages.dist is dist
    return batches


def test_nothing(started):
    assert _batch_p2p([]) == [] and _sorted_batch_p2p([]) == {} and started == []
    assert _wait_batch_p2p([]) is None


def test_a_batch_for_each_rank_in_their_order(started):
    ops = [Op(3, "a"), Op(1, "b"), Op(3, "c"), Op(1, "d")]
    works = _sorted_batch_p2p(ops, "forward")
    assert started == [["b", "d"], ["a", "c"]] and list(works) == [1, 3]
    for batch in works.values():
        _wait_batch_p2p(batch)
    assert [work.waited for batch in works.values() for work in batch] == [1] * 4
