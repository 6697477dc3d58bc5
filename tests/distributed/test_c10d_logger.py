"""What functions report to the logger of process groups."""
from __future__ import annotations

import logging

import pytest

from flambeau import distributed as dist
from flambeau.distributed import c10d_logger


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        self.seen.append(record.msg)


@pytest.fixture
def kept():
    handler = Keep()
    c10d_logger._c10d_logger.addHandler(handler)
    yield handler.seen
    c10d_logger._c10d_logger.removeHandler(handler)


@c10d_logger._exception_logger
def work(value, group=None):
    """Works."""
    if value is None:
        raise ValueError("bad")
    return value


def test_errors_are_logged(kept):
    assert work(3) == 3 and work.__doc__ == "Works." and kept == []
    with pytest.raises(ValueError, match="bad"):
        work(None)
    assert [(found["func_name"], found["error"]) for found in kept] == [("work", "bad")]


def test_process_and_group(kept):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError):
            work(None, group=dist.group.WORLD)
    finally:
        dist.destroy_process_group()
    assert {name: kept[0][name] for name in (
        "backend", "world_size", "group_size", "global_rank", "local_rank")} == {
        "backend": "gloo", "world_size": "1", "group_size": "1", "global_rank": "0",
        "local_rank": "0"}


def test_times():
    timed = c10d_logger._time_logger(len)
    assert timed([1, 2]) == 2 and timed.__name__ == "len"
    with pytest.raises(TypeError):
        timed(3)


def test_the_logger():
    found = c10d_logger._get_or_create_logger()
    assert found is c10d_logger._c10d_logger and found.name == "c10d-NullHandler-default"
    assert found.level == logging.DEBUG and not found.propagate
    with pytest.raises(KeyError):
        c10d_logger._get_or_create_logger("nowhere")
