"""What storages of bytes and of numbers share: their base, and what they answer of devices."""
from __future__ import annotations

from typing import Any

from flambeau._support.own_methods import of_class

TYPED_STORAGES = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()")


class InMainMemory:
    """What every storage answers while there is no accelerator."""

    __slots__ = ()
    is_cuda = is_sparse = is_hpu = False

    def get_device(self) -> int:
        """-1: there is no accelerator."""
        return -1

    def resizable(self) -> bool:
        """Whether `resize_` can change the size."""
        return True

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """A copy on a CUDA device: there is none."""
        to: Any = self
        return to.to(device="cuda")

    def hpu(self, device: Any = None, non_blocking: bool = False) -> Any:
        """A copy on an HPU device: there is none."""
        to: Any = self
        return to.to(device="hpu")

    def is_pinned(self, device: Any = None) -> bool:
        """Whether an accelerator can copy from this memory while others run: no."""
        return False


of_class("_StorageBase", InMainMemory)


class StorageBase:
    """What a storage of bytes is an instance of; none is made of it itself."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then "
                               "construct that")
        return object.__new__(cls)
