"""Around device meshes."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed.device_mesh import _mesh_resources, init_device_mesh


@pytest.fixture
def four():
    from flambeau.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield
    dist.destroy_process_group()


def test_meshes_that_are_active(four):
    with pytest.raises(RuntimeError, match="No device mesh is currently active!"):
        _mesh_resources.get_current_mesh()
    outer, inner = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2))
    with outer:
        with inner:
            assert _mesh_resources.get_current_mesh() is inner
        assert _mesh_resources.get_current_mesh() is outer
    with pytest.raises(RuntimeError, match="No device mesh"):
        _mesh_resources.get_current_mesh()


def test_names(four):
    with pytest.raises(RuntimeError, match="Each mesh_dim_name must be unique"):
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a"))
    with pytest.raises(RuntimeError, match="mesh_shape and mesh_dim_names should have same length"):
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",))


@pytest.mark.parametrize(("override", "words"), [
    ({"a": "fake", 0: "fake"}, "Found redundant dim index 0 and name a in backend_override"),
    ({"c": "fake"}, r"Found invalid keys in backend_override: got \['c'\], expected integers in "
                    r"range \[0, 2\) or one of \('a', 'b'\)"),
    ({2: "fake"}, "Found invalid keys in backend_override")])
def test_backends_of_dimensions(four, override, words):
    with pytest.raises(RuntimeError, match=words):
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"), backend_override=override)


def test_the_whole(four):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    assert _mesh_resources.get_root_mesh(mesh["b"]) is mesh
    assert (mesh["b"].get_group().size() == 2 and mesh.get_coordinate() == [0, 1]) or \
        tuple(mesh.get_coordinate()) == (0, 1)
