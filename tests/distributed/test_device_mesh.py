import pytest

import flambeau.distributed as dist
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.stores import HashStore


@pytest.fixture(autouse=True)
def group():
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_mesh_of_one_process():
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (1, 1) and mesh.ndim == 2 and mesh.size() == mesh.size(0) == 1
    assert mesh.get_coordinate() == (0, 0) and mesh.get_rank() == mesh.get_local_rank("tp") == 0
    assert mesh.get_group("dp") is dist.group.WORLD and mesh.mesh.tolist() == [[0]]
    assert repr(mesh) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))"
    assert repr(mesh["tp"]) == "DeviceMesh((tp=1), 'cpu', stride=((),))"
    assert repr(mesh._flatten("x")) == "DeviceMesh((x=1), 'cpu', stride=((),))"
    assert repr(DeviceMesh("cpu", [0])) == "DeviceMesh((1,), 'cpu', stride=((),))"
    assert mesh == init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp")) != mesh["dp"]


@pytest.mark.parametrize("make, error, text", [
    (lambda m: m["zz"], KeyError, "Invalid mesh_dim_names"),
    (lambda m: init_device_mesh("cpu", (2,)), RuntimeError, "world size 1, but found 2 ranks"),
    (lambda m: init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b")), RuntimeError,
     "same length"),
    (lambda m: init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a")), RuntimeError, "unique"),
    (lambda m: init_device_mesh("cuda:0", (1,)), RuntimeError, "index is not supported"),
    (lambda m: init_device_mesh("cpu", (1,))["a"], RuntimeError, "without mesh_dim_names"),
    (lambda m: m.get_group(), RuntimeError, "mesh_dim"),
])
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make(init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp")))
