"""`torch._VF`: the functions under their Python wrappers, for code that calls them there.

    >>> from flambeau import _VF
    >>> _VF.unique_dim(flambeau.tensor([[3], [1], [3]]), 0)[0].tolist()
    [[1], [3]]
"""
from typing import Any

import flambeau
from flambeau.ops.reduction.searching import unique_dim


def __getattr__(name: str) -> Any:
    return getattr(flambeau, name)


__all__ = ["unique_dim"]
