"""Groups of which one process is enough: the backend `fake`, which importing this registers.

>>> from flambeau import distributed as dist
>>> dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
>>> dist.get_rank(), dist.get_world_size()
(3, 8)
>>> dist.destroy_process_group()
"""
from __future__ import annotations

from typing import Any

from flambeau.distributed._c10d.backends.fake import FakeProcessGroup
from flambeau.distributed._c10d.backends.registry import Backend
from flambeau.distributed._c10d.stores import HashStore


class FakeStore(HashStore):
    """A store that nobody else sees."""


def _create_fake_pg(common_opts: Any, backend_opts: Any) -> FakeProcessGroup:
    return FakeProcessGroup(common_opts.group_rank, common_opts.group_size, backend_opts)


if "FAKE" not in Backend._plugins:
    Backend.register_backend("fake", _create_fake_pg, extended_api=True,
                             devices=["cpu", "cuda", "hpu", "xpu"])
