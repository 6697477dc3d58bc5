"""Parts and coordinates of meshes as functions."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed._ops import device_mesh as ops
from flambeau.distributed.device_mesh import init_device_mesh


@pytest.fixture
def mesh():
    from flambeau.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=5, world_size=8)
    yield init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("a", "b", "c"))
    dist.destroy_process_group()


def test_parts(mesh):
    part = ops._get_submesh_impl(mesh, [0, 2])
    assert part.mesh_dim_names == ("a", "c") and part.mesh.tolist() == [[0, 1], [4, 5]]
    mesh["b", "c"]._flatten()
    flat = ops._get_flattened_submesh_impl(mesh, [1, 2])
    assert flat.mesh.tolist() == [4, 5, 6, 7]


def test_names_are_needed(mesh):
    with pytest.raises(ValueError, match="Cannot slice mesh without dim names: DeviceMesh"):
        ops._get_submesh_impl(init_device_mesh("cpu", (2, 4)), [0])


def test_coordinates(mesh):
    full = mesh.mesh.unsqueeze(0)           # with its only copy
    found = [ops._runtime_compute_coordinate_on_dim_impl(full, i) for i in range(3)]
    assert found == [1, 0, 1]
