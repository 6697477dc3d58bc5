"""What is logged of saves and loads."""
from __future__ import annotations

import logging

import pytest

from flambeau.distributed import HashStore, destroy_process_group, init_process_group
from flambeau.distributed.checkpoint import logger as module


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        record.msg = dict(record.msg)           # the caller goes on to change it
        self.seen.append(record)


@pytest.fixture
def kept():
    handler, log = Keep(), module._dcp_logger
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler.seen
    log.removeHandler(handler)
    log.setLevel(level)


@module._dcp_method_logger()
def work(a, checkpoint_id=None):
    return a


@module._dcp_method_logger(log_exceptions=True)
def fails():
    raise ValueError("bad")


@pytest.fixture
def alone():
    init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    destroy_process_group()


def events(kept):
    return [record.msg["event"] for record in kept]


def test_begin_and_end(kept, alone):
    assert work(3, checkpoint_id="place") == 3 and work.__name__ == "work"
    assert events(kept) == ["start", "end"]
    assert kept[0].msg["checkpoint_id"] == "place" and kept[1].msg["time"] > 0


def test_errors(kept, alone):
    with pytest.raises(ValueError, match="bad"):
        fails()
    assert events(kept) == ["start", "exception"]
    assert "bad" in kept[1].msg["error"] and kept[1].levelno == logging.ERROR


def test_of_objects(kept, alone):
    class Writer:
        checkpoint_id = "mine"

        @module._dcp_method_logger(log_exceptions=True)
        def write(self, data):
            return data
    assert Writer().write(2) == 2 and len(events(kept)) == 2
