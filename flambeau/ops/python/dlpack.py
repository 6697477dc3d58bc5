"""A tensor's memory for other array libraries."""
from __future__ import annotations

import enum
from typing import Any

from flambeau._support.c_functions import type_name
from flambeau.core.tensor import Tensor


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


DLDeviceType.__module__ = "flambeau.utils.dlpack"      # where users find it


def to_dlpack(tensor: Tensor, stream: Any, max_version: tuple[int, int] | None,
              dl_device: tuple[int, int] | None, copy: bool | None) -> Any:
    """The memory as a DLPack capsule; `None` leaves an option to NumPy."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None:
        if not isinstance(stream, int):
            raise TypeError("stream must be ``int`` or ``none``")
        if stream != -1:
            raise AssertionError("stream should be None on cpu.")
    if copy is not None and not isinstance(copy, bool):
        raise TypeError("_to_dlpack(): argument 'copy' must be bool, not "
                        f"{type_name(copy)}")
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    return tensor.numpy().__dlpack__(**{k: v for k, v in options.items() if v is not None})
