"""What values of other processes are: there are none, as `torch.distributed.rpc` says."""
from __future__ import annotations

from typing import Any

__all__ = ["PyRRef"]


class PyRRef:
    """A value in another process. None can be made."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.distributed.rpc.RRef: flambeau has no values in other "
                                  "processes")
