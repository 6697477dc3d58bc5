"""Grouping tensors for ops on lists of them."""
from __future__ import annotations

from flambeau.core.devices import device
from flambeau.core.dtypes import dtype
from flambeau.core.tensor import Tensor

TensorListList = list[list[Tensor | None]]
Indices = list[int]

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of devices for which optimisers prefer ops on lists."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The types of devices that have optimisers of one kernel."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


_EMPTY = ("Expected !{}.empty() to be true, but got false.  (Could this error message be "
          "improved?  If so, please report an enhancement request to PyTorch.)")


def _group_tensors_by_device_and_dtype(
        tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[TensorListList, Indices]]:
    """The columns of lists of equal length, by device and dtype of the first list's tensors.

    >>> a, b = flambeau.ones(1), flambeau.ones(1, dtype=flambeau.float64)
    >>> groups = _group_tensors_by_device_and_dtype([[a, b], [None, a]], with_indices=True)
    >>> groups[a.device, b.dtype]
    ([[tensor([1.], dtype=torch.float64)], [tensor([1.])]], [1])
    """
    if not tensorlistlist:
        raise RuntimeError(_EMPTY.format("nested_tensorlist"))
    first = tensorlistlist[0]
    if not first:
        raise RuntimeError(_EMPTY.format("nested_tensorlist[0]"))
    if any(tensors and len(tensors) != len(first) for tensors in tensorlistlist):
        raise RuntimeError("Expected all lists of tensors to be empty or of the length of the "
                           f"first, {len(first)}, but got {[len(ts) for ts in tensorlistlist]}.")
    groups: dict[tuple[device, dtype], tuple[TensorListList, Indices]] = {}
    for place, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError("Tensors of the first list of nested Tensor lists are supposed to "
                               f"be defined but the {place}-th Tensor is not.")
        lists, places = groups.setdefault((tensor.device, tensor.dtype),
                                          ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist):
            if tensors:
                group.append(tensors[place])
        if with_indices:
            places.append(place)
    return groups


def _device_has_foreach_support(device: device) -> bool:
    """Do ops on lists run on a device?"""
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: list[Tensor | None], device: device) -> bool:
    """Do ops on lists take these tensors?"""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors)
