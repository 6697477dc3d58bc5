"""Grouping tensors for ops on lists of them."""

import pytest

import flambeau as torch
from flambeau.utils._foreach_utils import (
    _device_has_foreach_support,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
    _has_foreach_support,
)


def test_tensors_are_grouped():
    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.zeros(1)
    groups = _group_tensors_by_device_and_dtype([[a, b, c], [None, a, b], []], with_indices=True)
    assert set(groups) == {(a.device, torch.float32), (a.device, torch.float64)}
    lists, places = groups[a.device, torch.float32]
    assert lists[0] == [a, c] and lists[1][0] is None and lists[2] == [] and places == [0, 2]
    for wrong, message in (([], "nested_tensorlist.empty"), ([[]], r"nested_tensorlist\[0\]"),
                           ([[a], [a, a]], "of the length of the first, 1"),
                           ([[None]], "the 0-th Tensor is not")):
        with pytest.raises(RuntimeError, match=message):
            _group_tensors_by_device_and_dtype(wrong)
    assert _has_foreach_support([a, None], a.device)
    assert not _has_foreach_support([torch.nn.Parameter(a)], a.device)


def test_supported_devices():
    assert "cpu" in _get_fused_kernels_supported_devices()
    assert "cuda" in _get_fused_kernels_supported_devices()
    assert _device_has_foreach_support(torch.device("cpu"))
