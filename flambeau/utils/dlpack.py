"""Sharing memory with other array libraries, through DLPack."""
from __future__ import annotations

import enum
from typing import Any

import flambeau
from flambeau.schema.arguments import bound_by


class DLDeviceType(enum.IntEnum):
    """The numbers that DLPack has given to types of devices."""
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


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
