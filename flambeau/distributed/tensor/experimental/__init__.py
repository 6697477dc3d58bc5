"""What is new and may change: local functions on distributed tensors, rules of the user's."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flambeau.distributed.tensor._api import DTensor
from flambeau.distributed.tensor._dispatch import implicit_replication as _implicit

__all__ = ["implicit_replication"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, plain tensors in an op with distributed ones count as replicated."""
    with _implicit(DTensor._op_dispatcher):
        yield
