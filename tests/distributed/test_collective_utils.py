"""Steps that one process, or each, does for all, and what all learn if they fail."""
import logging

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import c10d_logger, logging_handlers
from flambeau.distributed import collective_utils as c


def fail():
    raise ValueError("oops")


def steps(rank):
    world = dist.group.WORLD
    assert c.broadcast(lambda: 5 + rank, pg=world, rank=1) == 6
    assert c.all_gather(lambda: 5 + rank, pg=world) == [5, 6]
    with pytest.raises(RuntimeError, match="Rank 1 failed: stage read: exception oops") as raised:
        c.broadcast(fail, stage_name="read", pg=world, rank=1)
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(RuntimeError, match="all_gather failed on stage read with exception on "
                                           "ranks 1: ValueError"):
        c.all_gather(fail if rank else 3, "read", world)
    found = [None, None]
    c.all_gather_object_enforce_type(world, found, rank)
    assert found == [0, 1]
    with pytest.raises(TypeError, match=r"index 1 is <class 'int'>, .* <class 'str'>"):
        c.all_gather_object_enforce_type(world, found, rank or "a")
    generator = torch.Generator().manual_seed(rank)
    assert "Generator desync detected:\n['Ranks', 'Generator state hash values']" in \
        c._check_rng_sync(generator, world)
    assert c._check_rng_sync(generator.manual_seed(3), world) is None


def test_two_processes(processes):
    processes(steps)


def test_one_process():
    assert c.broadcast(3) == 3 and c.all_gather(lambda: 4) == [4]
    with pytest.raises(RuntimeError, match="all_gather failed with exception oops"):
        c.all_gather(fail)
    with pytest.raises(AssertionError, match="expected to be None if not successful"):
        c.broadcast(3, success=False)
    with pytest.raises(RuntimeError, match="Rank 0 failed"):
        c.broadcast(None, success=False)


@pytest.mark.parametrize("ranks, text", [
    ([0], "0"), ([0, 1, 2], "0:3"), ([0, 2, 4, 6], "0:8:2"), ([0, 1, 2, 4, 5, 8], "0:3,4:6,8"),
    ([3, 1, 9], "1:5:2,9"), ([5, 10, 15, 16, 17, 20, 22, 24], "5:20:5,16:18,20:26:2"), ([], "")])
def test_ranks_in_few_words(ranks, text):
    assert c._summarize_ranks(ranks) == text


def test_errors_are_logged(alone):
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.msg)
    c10d_logger._c10d_logger.addHandler(handler)
    try:
        with pytest.raises(ValueError, match="oops"):
            c10d_logger._exception_logger(fail)()
        assert c10d_logger._time_logger(lambda x: x)(4) == 4
    finally:
        c10d_logger._c10d_logger.removeHandler(handler)
    assert records == [{"func_name": "fail", "pg_name": "None", "backend": "gloo",
                        "world_size": "1", "group_size": "1", "global_rank": "0",
                        "local_rank": "0", "error": "oops"}]
    assert list(logging_handlers._log_handlers) == ["default"]
