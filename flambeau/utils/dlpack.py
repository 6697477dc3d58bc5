"""Sharing memory with other array libraries, through DLPack."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.ops.python.dlpack import DLDeviceType
from flambeau.schema.arguments import bound_by


@bound_by("_to_dlpack(Tensor data) -> object")
def to_dlpack(tensor: flambeau.Tensor) -> Any:
    """A capsule that looks at the memory of `tensor`; it can be taken once.

    >>> x = flambeau.zeros(2)
    >>> y = from_dlpack(to_dlpack(x))
    >>> _ = y.fill_(3)
    >>> x
    tensor([3., 3.])
    """
    return tensor.detach().numpy().__dlpack__()


from_dlpack = flambeau.from_dlpack

__all__ = ["DLDeviceType", "from_dlpack"]
