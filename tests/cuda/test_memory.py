"""Memory of CUDA devices where there are none."""

import pytest

import flambeau as torch
from flambeau.cuda import memory


@pytest.mark.parametrize("name", [
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"])
def test_nothing_is_allocated(name):
    assert getattr(memory, name)() == 0
    assert getattr(torch.cuda, name) is getattr(memory, name)


@pytest.mark.parametrize("name", ["_record_memory_history", "_dump_snapshot", "_snapshot"])
def test_there_is_no_history(name):
    with pytest.raises((AttributeError, AssertionError)):
        getattr(memory, name)()
