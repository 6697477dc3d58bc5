"""The names of `flambeau.distributed.tensor`."""
import pytest

import flambeau as torch
from flambeau.distributed import device_mesh, tensor
from flambeau.distributed.tensor import _dtensor_spec, placement_types


def test_what_is_public():
    assert set(tensor.__all__) >= {
        "DTensor", "distribute_tensor", "distribute_module", "Shard", "Replicate", "Partial",
        "Placement", "ones", "empty", "full", "rand", "randn", "zeros"}
    assert all(hasattr(tensor, name) for name in tensor.__all__)
    assert torch.distributed.tensor is tensor and tensor.DTensor.__name__ == "DTensor"
    assert tensor.Shard is placement_types.Shard


def test_what_is_loaded_when_it_is_asked_for():
    assert tensor.DeviceMesh is device_mesh.DeviceMesh
    for name in ("debug", "parallel", "experimental"):
        assert getattr(tensor, name).__name__.endswith(f"distributed.tensor.{name}")
    assert _dtensor_spec.DTensorSpec.__module__.endswith("_dtensor_spec")
    with pytest.raises(AttributeError, match="has no attribute 'zzz'"):
        tensor.zzz
