"""What is new and may change: local functions on distributed tensors, rules of the user's, and
attention over sequences that processes share."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flambeau.distributed.tensor._api import DTensor
from flambeau.distributed.tensor._dispatch import implicit_replication as _implicit
from flambeau.distributed.tensor.experimental._context_parallel import context_parallel
from flambeau.distributed.tensor.experimental._func_map import local_map
from flambeau.distributed.tensor.experimental._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, plain tensors in an op with distributed ones count as replicated."""
    with _implicit(DTensor._op_dispatcher):
        yield
