"""Sharing memory with other array libraries, through DLPack."""
from __future__ import annotations

import enum
from typing import Any

import flambeau


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


class _Holder:
    """A capsule in the form that `from_dlpack` functions take."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **versions: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


def to_dlpack(tensor: flambeau.Tensor) -> Any:
    """A capsule that looks at the memory of `tensor`; it can be taken once.

    >>> x = flambeau.zeros(2)
    >>> y = from_dlpack(to_dlpack(x))
    >>> _ = y.fill_(3)
    >>> x
    tensor([3., 3.])
    """
    return tensor.numpy().__dlpack__(max_version=(1, 0))


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None
                ) -> flambeau.Tensor:
    """A tensor on the memory of `ext_tensor`: any object with `__dlpack__`, or a capsule."""
    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _Holder(ext_tensor)
    return flambeau.from_dlpack(ext_tensor, device=device, copy=copy)


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
