"""Meshes: their parts, groups and names; expected values are PyTorch's for process 5 of 8."""
import copy
import pickle

import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau.distributed._mesh_layout import _FlatLayout, _MeshLayout
from flambeau.distributed._ops import device_mesh as ops
from flambeau.distributed.device_mesh import DeviceMesh, _mesh_resources, init_device_mesh
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def mesh():
    dist.init_process_group("fake", store=FakeStore(), rank=5, world_size=8)
    yield init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
    dist.destroy_process_group()


def test_a_mesh_of_one_process(alone):
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (1, 1) and mesh.ndim == 2 and mesh.size() == mesh.size(0) == 1
    assert mesh.get_coordinate() == (0, 0) and mesh.get_rank() == mesh.get_local_rank("tp") == 0
    assert mesh.get_group("dp") is dist.group.WORLD and mesh.mesh.tolist() == [[0]]
    assert repr(mesh) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))"
    assert repr(mesh["tp"]) == "DeviceMesh((tp=1), 'cpu', stride=((),))"
    assert repr(mesh._flatten("x")) == "DeviceMesh((x=1), 'cpu', stride=((),))"
    assert repr(DeviceMesh("cpu", [0])) == "DeviceMesh((1,), 'cpu', stride=((),))"
    assert mesh == init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp")) != mesh["dp"]


def test_parts_of_a_mesh(mesh):
    assert repr(mesh) == "DeviceMesh((pp=2, dp=2, tp=2), 'cpu', stride=(4, 2, 1))"
    assert mesh.get_coordinate() == (1, 0, 1) and mesh.mesh_dim_names == ("pp", "dp", "tp")
    assert mesh["dp"].mesh.tolist() == [5, 7] and mesh["dp"].mesh.dtype is torch.int32
    assert mesh["dp", "tp"].mesh.tolist() == [[4, 5], [6, 7]]
    assert repr(mesh["pp", "tp"]) == "DeviceMesh((pp=2, tp=2), 'cpu', stride=(4, 1))"
    assert mesh["dp"] == mesh["dp"] != mesh["tp"] and hash(mesh["dp"]) == hash(mesh["dp"])
    assert mesh["dp"]._get_root_mesh() is mesh and mesh["dp", "tp"]["tp"] == mesh["tp"]
    assert [m.mesh.tolist() for m in mesh._get_all_submeshes("dp")] == [
        [0, 2], [1, 3], [4, 6], [5, 7]]
    assert ops._get_submesh_impl(mesh, [1]) == mesh["dp"]
    assert copy.deepcopy(mesh) == mesh == pickle.loads(pickle.dumps(mesh))
    with mesh:
        assert _mesh_resources.get_current_mesh() is mesh


def test_groups_along_dimensions(mesh):
    assert [dist.get_process_group_ranks(g) for g in mesh.get_all_groups()] == [
        [1, 5], [5, 7], [4, 5]]
    assert [(g.group_name, g.group_desc) for g in mesh.get_all_groups()] == [
        ("2", "mesh_pp"), ("8", "mesh_dp"), ("11", "mesh_tp")]
    assert mesh.get_group(0) is mesh["pp"].get_group()
    assert mesh.get_local_rank("tp") == 1 == mesh["tp"].get_local_rank()
    assert init_device_mesh("cpu", (8,)).get_group() is dist.group.WORLD
    assert DeviceMesh("cpu", [[0, 1], [2, 3]]).get_coordinate() is None


def test_dimensions_joined_and_split(mesh):
    flat = mesh["dp", "tp"]._flatten()
    assert repr(flat) == "DeviceMesh((dp_tp=4), 'cpu', stride=(1,))" and mesh["dp_tp"] is not flat
    assert flat.mesh.tolist() == [4, 5, 6, 7] and mesh["dp_tp"] == flat
    assert repr(mesh["pp", "dp_tp"]) == "DeviceMesh((pp=2, dp_tp=4), 'cpu', stride=(4, 1))"
    apart = mesh["pp", "tp"]._flatten("pt")
    assert repr(apart) == "DeviceMesh((pt=4), 'cpu', stride=((4, 1),))"
    assert apart.mesh.tolist() == [0, 1, 4, 5] == dist.get_process_group_ranks(mesh.get_group("pt"))
    line = init_device_mesh("cpu", (8,), mesh_dim_names=("w",))
    split = line._unflatten("w", (2, 4), ("a", "b"))
    assert repr(split) == "DeviceMesh((a=2, b=4), 'cpu', stride=(4, 1))"
    assert dist.get_process_group_ranks(split.get_group("b")) == [4, 5, 6, 7]
    assert DeviceMesh._concatenate([mesh["dp"], mesh["tp"]]) == mesh["dp", "tp"]


def test_from_groups(mesh):
    one = DeviceMesh.from_group(mesh.get_group("dp"), "cpu")
    assert repr(one) == "DeviceMesh((2,), 'cpu', stride=(1,))" and one.mesh.tolist() == [5, 7]
    two = DeviceMesh.from_group([mesh.get_group("pp"), mesh.get_group("dp")], "cpu",
                                mesh=[[1, 3], [5, 7]], mesh_dim_names=("a", "b"))
    assert two.get_group("b") is mesh.get_group("dp") and two.get_coordinate() == (1, 0)


def test_layouts():
    layout = _FlatLayout((2, 2), (4, 1))
    assert layout.all_ranks_from_zero() == [0, 1, 4, 5] and layout.cosize() == 6
    assert layout.complement(8) == _FlatLayout(2, 2)
    assert layout.global_ranks(8) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert _FlatLayout((2, 2), (2, 1)) == _FlatLayout(4, 1) == _FlatLayout((4,), (1,))
    assert not _FlatLayout((2, 2), (1, 4)).check_sorted()
    assert not _FlatLayout((2, 4), (4, 2)).check_orthogonal()
    cube = _MeshLayout.from_sizes_strides((2, 2, 2))
    assert _FlatLayout((2, 4), (4, 1)).composition(cube) == cube
    assert cube.splice(0, 2, _MeshLayout.from_sizes_strides((4,), (2,))).top_level_sizes == (4, 2)
    assert len(cube) == 3 and cube[0] == _FlatLayout(2, 4) and cube[1:].numel() == 4
    assert _MeshLayout.from_sizes_strides((2, 2), (4, 1)).remap_to_tensor(
        torch.arange(8)).tolist() == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def group_sums(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    for name, wanted in (("a", [2.0, 4.0, 2.0, 4.0]), ("b", [1.0, 1.0, 5.0, 5.0])):
        x = torch.tensor([float(rank)])
        dist.all_reduce(x, group=mesh.get_group(name))
        assert x.item() == wanted[rank]
    x = torch.tensor([float(rank)])
    dist.all_reduce(x, group=mesh._flatten().get_group())
    assert x.item() == 6.0


def test_four_processes(processes):
    processes(group_sums, size=4)


@pytest.mark.parametrize("make, error, text", [
    (lambda m: m["zz"], KeyError, "Invalid mesh_dim_names"),
    (lambda m: m["tp", "dp"], KeyError, "should be in ascending order"),
    (lambda m: m["dp", "dp"], RuntimeError, "Slicing overlapping dim_names"),
    (lambda m: m["dp"]["tp"], KeyError, r"Valid mesh_dim_names are \['dp'\]"),
    (lambda m: init_device_mesh("cpu", (9,)), RuntimeError, "world size 8, but found 9 ranks"),
    (lambda m: init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b")), RuntimeError,
     "same length"),
    (lambda m: init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a")), RuntimeError, "unique"),
    (lambda m: init_device_mesh("cuda:0", (1,)), RuntimeError, "index is not supported"),
    (lambda m: init_device_mesh("cpu", (1,))["a"], RuntimeError, "without mesh_dim_names"),
    (lambda m: init_device_mesh("cpu", (8,), backend_override={"z": "fake"}), RuntimeError,
     "Found invalid keys in backend_override"),
    (lambda m: m.get_group(), RuntimeError, "mesh_dim"),
    (lambda m: m.get_group("zz"), KeyError, "Mesh dimension 'zz' does not exist"),
    (lambda m: DeviceMesh("cpu"), TypeError, "The mesh argument is required"),
    (lambda m: DeviceMesh("cpu", [0, 0]), ValueError, "must not contain duplicate entries"),
    (lambda m: m._flatten("pp"), ValueError, "already exists for submesh"),
    (lambda m: m._unflatten(0, (3,), ("z",)), ValueError, "must be equal for unflatten"),
    (lambda m: m._unflatten("q", (2,), ("z",)), ValueError, "dim q specified in `_unflatten`"),
    (lambda m: DeviceMesh._concatenate([m["dp"], m["dp"]]), RuntimeError, "overlapping meshes"),
    (lambda m: DeviceMesh.from_group(m.get_group("dp"), "cpu", mesh=[0, 1]), ValueError,
     r"Invalid mesh \[0, 1\] for ProcessGroup with ranks \[5, 7\]"),
    (lambda m: DeviceMesh.from_group([], "cpu"), ValueError, "at least one ProcessGroup"),
    (lambda m: _mesh_resources.get_current_mesh(), RuntimeError, "No device mesh is currently"),
])
def test_refusals(mesh, make, error, text):
    with pytest.raises(error, match=text):
        make(mesh)
