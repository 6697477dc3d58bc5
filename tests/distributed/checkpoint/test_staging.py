"""Copies of states."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.staging import (
    AsyncStager,
    BlockingAsyncStager,
    DefaultStager,
    StagingOptions,
)

PLAIN = {"use_pinned_memory": False, "use_shared_memory": False, "use_non_blocking_copy": False}


def state():
    return {"w": torch.ones(2), "l": [torch.zeros(1), 3], "s": "x"}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_copy_is_the_state_of_then(asynchronous):
    stager, mine = DefaultStager(StagingOptions(use_async_staging=asynchronous, **PLAIN)), state()
    found = stager.stage(mine)
    if asynchronous:
        found = found.result(30)
    mine["w"].zero_()
    assert found["w"].tolist() == [1, 1] and found["l"][1] == 3 and found["s"] == "x"
    assert isinstance(stager, AsyncStager)
    stager.close()


@pytest.mark.parametrize("cache", [False, True])
def test_copies_at_once(cache):
    stager, mine = BlockingAsyncStager(cache_staged_state_dict=cache), state()
    first = stager.stage(mine)
    mine["w"].zero_()
    assert first["w"].tolist() == [1, 1] and not stager.should_synchronize_after_execute
    second = stager.stage(mine)             # in PyTorch a cache needs an accelerator
    assert second["w"].tolist() == [0, 0]
    assert (second["w"].data_ptr() == first["w"].data_ptr()) is cache
    stager.synchronize_staging()
    stager.close()


def test_of_the_user():
    class Own(AsyncStager):
        pass
    own = Own()
    assert own.should_synchronize_after_execute
    with pytest.raises(NotImplementedError, match="Own must implement stage method"):
        own.stage({})


def test_options():
    found = StagingOptions()
    assert (found.use_pinned_memory, found.use_shared_memory, found.use_async_staging,
            found.use_non_blocking_copy) == (True,) * 4
