"""A process group of this process alone."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
