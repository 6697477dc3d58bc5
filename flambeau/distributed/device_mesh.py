"""Processes in the order of a grid whose dimensions have names."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import prod
from typing import Any

import flambeau
from flambeau._support.own_methods import adopt
from flambeau.core.tensor import Tensor
from flambeau.distributed import distributed_c10d as c10d
from flambeau.distributed._mesh_env import (
    _NO_OVERRIDE,
    Override,
    _check_names,
    _MeshEnv,
    _normalize_backend_override,
)
from flambeau.distributed._mesh_layout import _FlatLayout, _MeshLayout

__all__ = ["DeviceMesh", "init_device_mesh"]


_mesh_resources = _MeshEnv()
_distributed_opaque_types_registered = False


def _get_pg_from_name(mesh: DeviceMesh, name: str) -> Any:
    return c10d._resolve_process_group(name)


def _register_distributed_opaque_types() -> None:
    """Meshes and groups pass through compiled functions as they are: there is nothing to do."""
    global _distributed_opaque_types_registered
    _distributed_opaque_types_registered = True


class DeviceMesh:
    """The processes `mesh` (their ranks, an array), each with a device of `device_type`.

    A name, or several, in brackets gives the part of the mesh along these dimensions that goes
    through this process.

    >>> from flambeau.distributed._c10d.stores import HashStore
    >>> c10d.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate()
    (1, (0, 0))
    >>> c10d.destroy_process_group()
    """

    _root_mesh: DeviceMesh | None = None

    def __init__(self, device_type: str, mesh: Any = None, *,
                 mesh_dim_names: tuple[str, ...] | None = None,
                 backend_override: tuple[Override, ...] | None = None,
                 _init_backend: bool = True, _rank: int | None = None,
                 _layout: _MeshLayout | None = None, _rank_map: Tensor | None = None,
                 _root_mesh: DeviceMesh | None = None) -> None:
        if mesh is None and (_layout is None or _rank_map is None):
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        if mesh is not None:
            ranks = mesh.detach() if isinstance(mesh, Tensor) else flambeau.tensor(mesh)
            _rank_map = ranks.to("cpu", flambeau.int32).contiguous()
            _layout = _layout or _MeshLayout.from_sizes_strides(tuple(_rank_map.shape))
        self._device_type, self._layout = device_type, _layout
        self._rank_map = _rank_map.reshape(-1)
        self._mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root_mesh = _root_mesh
        self._flatten_mapping: dict[str, DeviceMesh] = {}
        self._dim_group_names: list[str] = []
        self._thread_id = None
        if _init_backend:
            self._setup_world_group_and_device()
            self._dim_group_names = self._init_process_groups(
                self._layout, self._rank_map, self._mesh_dim_names,
                backend_override or (_NO_OVERRIDE,) * self.ndim)
        self._rank = _rank if _rank is not None else \
            c10d.get_rank() if c10d.is_initialized() else 0
        self._coordinate_on_dim = self._compute_coordinate_on_dim()

    # ---- groups ---------------------------------------------------------------------------------

    def _setup_world_group_and_device(self) -> Any:
        if not c10d.is_initialized():
            c10d.init_process_group()
        size = c10d.get_world_size()
        if self._layout.numel() > size:
            raise RuntimeError(f"Mesh should not be bigger than default world size {size}, but "
                               f"found {self._layout.numel()} ranks!")
        return c10d._get_default_group()

    @staticmethod
    def _init_process_groups(layout: _MeshLayout, rank_map: Tensor,
                             mesh_dim_names: tuple[str, ...] | None,
                             backend_override: Sequence[Override]) -> list[str]:
        """Make the groups of all dimensions; the names of those that this process is in."""
        names = mesh_dim_names or tuple(f"dim_{i}" for i in range(len(layout)))
        found = [DeviceMesh._init_one_process_group(axis, rank_map, name, override)
                 for axis, name, override in zip(layout, names, backend_override)]
        return [name for name in found if name is not None] if None in found else found

    @staticmethod
    def _init_one_process_group(sub_layout: _FlatLayout, rank_map: Tensor, dim_name: str,
                                backend_override: Override) -> Any:
        """Make the groups along one dimension; the name of the one that this process is in."""
        backend, options = backend_override
        if tuple(backend_override) == _NO_OVERRIDE and (
                sub_layout.numel() == c10d.get_world_size() == rank_map.numel()) \
                and sorted(rank_map.tolist()) == rank_map.tolist():
            return c10d._get_default_group().group_name
        mine = None
        for ranks in _MeshLayout([sub_layout]).remap_to_tensor(rank_map).tolist():
            group = c10d.new_group(ranks, backend=backend, pg_options=options,
                                   group_desc=f"mesh_{dim_name}")
            if c10d.get_rank() in ranks:
                if mine is not None:
                    raise RuntimeError("Each device mesh dimension should get only one process "
                                       f"group, but got {c10d.get_rank()} in {ranks}!")
                mine = group.group_name
        return mine

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of the processes along one dimension through this one."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use "
                "`get_all_groups()` instead.")
        if not self._dim_group_names and self._init_nothing():
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if isinstance(mesh_dim, str):
            flattened = self._get_root_mesh()._flatten_mapping
            if mesh_dim in flattened:
                return flattened[mesh_dim].get_group()
            mesh_dim = self._get_mesh_dim_by_name(mesh_dim)
        return _get_pg_from_name(self, self._dim_group_names[mesh_dim or 0])

    def _init_nothing(self) -> bool:
        return self._is_current_rank_part_of_mesh()

    def get_all_groups(self) -> list[Any]:
        """The group along each dimension."""
        return [self.get_group(i) for i in range(self.ndim)]

    @staticmethod
    def from_group(group: Any, device_type: str, mesh: Any = None, *,
                   mesh_dim_names: tuple[str, ...] | None = None) -> DeviceMesh:
        """The mesh of the processes of a group; of several groups, `mesh` says where they are."""
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if not isinstance(group, list):
            ranks = c10d.get_process_group_ranks(group)
            if mesh is not None and flambeau.as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            made = DeviceMesh(device_type, ranks, mesh_dim_names=names, _init_backend=False)
            made._dim_group_names = [group.group_name]
            return made
        if not group:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        places = flambeau.as_tensor(mesh)
        if places.ndim != len(group):
            raise ValueError("Invalid mesh with ndim and groups with length, got "
                             f"ndim {places.ndim} and {len(group)} groups")
        made = DeviceMesh(device_type, places, mesh_dim_names=names, _init_backend=False)
        made._dim_group_names = [g.group_name for g in group]
        return made

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def device_type(self) -> str:
        """The type of the processes' devices."""
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The ranks of the processes, in their places."""
        return self._get_mesh_tensor_from_full_mesh(
            self._layout.remap_to_tensor(self._rank_map), self._rank)

    @staticmethod
    def _get_mesh_tensor_from_full_mesh(full_mesh: Tensor, current_rank: int | None = None
                                        ) -> Tensor:
        """Of all copies of a mesh the one that a process is in."""
        if full_mesh.shape[0] == 1:
            return full_mesh[0]
        rank = c10d.get_rank() if current_rank is None else current_rank
        mine = [part for part in full_mesh if rank in part.flatten().tolist()]
        if len(mine) != 1:
            raise RuntimeError("In order to get the mesh Tensor of a DeviceMesh it needs to either "
                               "have all its original dimensions (e.g., no slicing) or it needs to "
                               "contain the local rank")
        return mine[0]

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The name of each dimension."""
        return self._mesh_dim_names

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return self._layout.top_level_sizes

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._layout)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, of all or along one dimension."""
        return self._layout.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process."""
        return c10d.get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where in the grid this process is; None if it is not there."""
        return self._coordinate_on_dim

    def _sym_get_coordinate(self, index: int) -> int:
        return self.get_coordinate()[index]

    def _compute_coordinate_on_dim(self) -> tuple[int, ...] | None:
        return self._compute_coordinates_from_mesh(
            self._layout.remap_to_tensor(self._rank_map), self._rank)

    @staticmethod
    def _compute_coordinates_from_mesh(mesh_tensor: Tensor, rank: int) -> tuple[int, ...] | None:
        places = (mesh_tensor == rank).nonzero().tolist()
        return tuple(places[0][1:]) if places else None

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self.get_coordinate() is not None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where along one dimension this process is."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions",
                               "Optional kwarg `mesh_dim` needs to be specified when "
                               "device_mesh.ndim > 1.")
        return self.get_group(mesh_dim or 0).rank()

    # ---- parts of it ----------------------------------------------------------------------------

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one is a part of."""
        return self._root_mesh or self

    def _get_root_mesh_dim(self) -> int | None:
        """Which dimension of the root mesh this one is, if it has one dimension alone."""
        root, names = self._get_root_mesh(), self._mesh_dim_names
        assert self is root or self.ndim == 1 or names is None, "The submesh can only be a 1D mesh."
        assert self.ndim == 1, "The submesh can only be a 1D mesh."
        return root._get_mesh_dim_by_name(names[0]) if self is not root and names else None

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if not self._mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self._mesh_dim_names:
            raise KeyError(f"Mesh dimension '{mesh_dim_name}' does not exist.",
                           f"Available mesh dimensions are: mesh_dim_names={self._mesh_dim_names}")
        return self._mesh_dim_names.index(mesh_dim_name)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along the named dimensions, through this process."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        return self._create_sub_mesh(self._get_slice_mesh_layout(names), names)

    def _flattened(self) -> dict[str, DeviceMesh]:
        """The flattened meshes that can be named here."""
        return self._flatten_mapping if self is self._get_root_mesh() else {}

    def _get_slice_mesh_layout(self, mesh_dim_names: tuple[str, ...]) -> _MeshLayout:
        known = [*self._mesh_dim_names, *self._flattened()]
        if not all(name in known for name in mesh_dim_names):
            raise KeyError(f"Invalid mesh_dim_names {mesh_dim_names} specified. Valid "
                           f"mesh_dim_names are {known}.")
        axes: list[_FlatLayout] = []
        for name in mesh_dim_names:
            own = name in self._mesh_dim_names
            axes.append(self._layout[self._get_mesh_dim_by_name(name)] if own
                        else self._flattened()[name]._layout[0])
        found = _MeshLayout(axes)
        if len(set(found.collapse().all_ranks_from_zero())) < found.numel():
            raise RuntimeError(f"Slicing overlapping dim_names {mesh_dim_names} is not allowed.")
        if not found.collapse().check_sorted():
            raise KeyError(f"Invalid mesh_dim_names {mesh_dim_names} specified. Mesh dim indices "
                           "should be in ascending order.")
        return found

    def _create_sub_mesh(self, layout: _MeshLayout, submesh_dim_names: tuple[str, ...]
                         ) -> DeviceMesh:
        made = DeviceMesh(self._device_type, mesh_dim_names=submesh_dim_names, _layout=layout,
                          _rank_map=self._rank_map, _root_mesh=self._get_root_mesh(),
                          _init_backend=False)
        if self._dim_group_names:
            made._dim_group_names = [
                self._dim_group_names[self._get_mesh_dim_by_name(name)]
                if name in self._mesh_dim_names
                else self._flattened()[name]._dim_group_names[0] for name in submesh_dim_names]
        return made

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The meshes along a dimension, all that there are."""
        axis = self._layout[self._get_mesh_dim_by_name(mesh_dim_name)]
        rows = _MeshLayout([axis]).remap_to_tensor(self._rank_map)
        found = []
        for ranks in rows:
            made = DeviceMesh(self._device_type, ranks, mesh_dim_names=(mesh_dim_name,),
                              _init_backend=False)
            if self._rank in ranks.tolist() and self._dim_group_names:
                made._dim_group_names = [
                    self._dim_group_names[self._get_mesh_dim_by_name(mesh_dim_name)]]
            found.append(made)
        return found

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None
                 ) -> DeviceMesh:
        """All dimensions as one, whose name is that of all of them joined by `_`."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        override = _NO_OVERRIDE if backend_override is None else \
            next(_normalize_backend_override({0: backend_override}, 1))
        self._create_flatten_mesh(name, override)
        if self.ndim == 1 and name in self._mesh_dim_names:
            return self
        return self._get_root_mesh()._flatten_mapping[name]

    def _create_flatten_mesh(self, mesh_dim_name: str, backend_override: Override = _NO_OVERRIDE
                             ) -> None:
        root = self._get_root_mesh()
        if self.ndim == 1 and mesh_dim_name in self._mesh_dim_names:
            return
        if mesh_dim_name in (root._mesh_dim_names or ()):
            raise ValueError(
                f"{mesh_dim_name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {root._mesh_dim_names}. "
                "Please specify another valid mesh_dim_name.")
        layout = _MeshLayout([self._layout.collapse()])
        if mesh_dim_name in root._flatten_mapping:
            if root._flatten_mapping[mesh_dim_name]._layout == layout:
                return
            raise ValueError(f"Flatten mesh with mesh_dim_name {mesh_dim_name} has been created "
                             "before, Please specify another valid mesh_dim_name.")
        made = DeviceMesh(self._device_type, mesh_dim_names=(mesh_dim_name,), _layout=layout,
                          _rank_map=root._rank_map, _root_mesh=root, _init_backend=False)
        if self._dim_group_names:
            made._dim_group_names = [self._init_one_process_group(
                layout[0], root._rank_map, mesh_dim_name, backend_override)]
        root._flatten_mapping[mesh_dim_name] = made

    def _unflatten(self, dim: int | str, mesh_sizes: tuple[int, ...],
                   mesh_dim_names: tuple[str, ...], backend_override: Any = None) -> DeviceMesh:
        """One dimension as several."""
        if isinstance(dim, str):
            if dim not in (self._mesh_dim_names or ()):
                raise ValueError(f"dim {dim} specified in `_unflatten` is not in "
                                 f"{self._mesh_dim_names}")
            dim = self._get_mesh_dim_by_name(dim)
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        size = self.shape[dim]
        if prod(mesh_sizes) != size:
            raise ValueError(
                f"The product of mesh_sizes={tuple(mesh_sizes)} is {prod(mesh_sizes)}, but the "
                f"original dimension at dim={dim} has size {size}. These must be equal for "
                "unflatten to work correctly.")
        overrides = tuple(_normalize_backend_override(backend_override or {}, len(mesh_sizes),
                                                      tuple(mesh_dim_names)))
        return self._create_unflatten_mesh(dim, tuple(mesh_sizes), tuple(mesh_dim_names),
                                           overrides)

    def _create_unflatten_mesh(self, dim: int, mesh_sizes: tuple[int, ...],
                               mesh_dim_names: tuple[str, ...],
                               backend_override: tuple[Override, ...] = (_NO_OVERRIDE,)
                               ) -> DeviceMesh:
        inner = self._layout[dim].composition(_MeshLayout.from_sizes_strides(mesh_sizes))
        own = self._mesh_dim_names or ()
        made = DeviceMesh(self._device_type,
                          mesh_dim_names=(*own[:dim], *mesh_dim_names, *own[dim + 1:]),
                          _layout=self._layout.splice(dim, dim + 1, inner),
                          _rank_map=self._rank_map, _root_mesh=self._get_root_mesh(),
                          _init_backend=False)
        if self._dim_group_names:
            groups = self._init_process_groups(inner, self._rank_map, mesh_dim_names,
                                               backend_override)
            made._dim_group_names = [*self._dim_group_names[:dim], *groups,
                                     *self._dim_group_names[dim + 1:]]
        return made

    @staticmethod
    def _concatenate(device_mesh_list: list[DeviceMesh]) -> DeviceMesh:
        """The dimensions of several parts of a mesh, one after the other."""
        first = device_mesh_list[0]
        for mesh in device_mesh_list:
            if not flambeau.equal(mesh._rank_map, first._rank_map):
                raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device "
                                   f"meshes: {device_mesh_list}")
        layout = _MeshLayout([axis for mesh in device_mesh_list for axis in mesh._layout])
        if len(set(layout.collapse().all_ranks_from_zero())) < layout.numel():
            raise RuntimeError(f"Cannot concatenate overlapping meshes: {device_mesh_list}")
        names = tuple([n for mesh in device_mesh_list for n in mesh._mesh_dim_names or ()])
        made = DeviceMesh(first._device_type, mesh_dim_names=names, _layout=layout,
                          _rank_map=first._rank_map, _root_mesh=first._get_root_mesh(),
                          _init_backend=False)
        made._dim_group_names = [n for mesh in device_mesh_list for n in mesh._dim_group_names]
        return made

    # ---- comparing, printing --------------------------------------------------------------------

    def _hash_key(self) -> tuple[Any, ...]:
        return (tuple(self._rank_map.tolist()), self._layout, self._device_type,
                self._mesh_dim_names, self._thread_id)

    def _stable_hash(self) -> str:
        """A hash that is the same in all processes."""
        text = repr(self._hash_key()).encode()
        return hashlib.blake2b(text, digest_size=16, usedforsecurity=False).hexdigest()

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash(self._hash_key())
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_hash"}     # one for each process

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh)
                                 and self._hash_key() == other._hash_key())

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, exc_traceback: Any) -> None:
        _mesh_resources.mesh_stack.pop()

    def __repr__(self) -> str:
        form = str(self.shape)
        if self._mesh_dim_names is not None:
            named = ", ".join(f"{n}={s}" for n, s in zip(self._mesh_dim_names, self.shape))
            form = f"({named})"
        strides = tuple(a.stride[0] if len(a.stride) == 1 else a.stride for a in self._layout)
        return f"DeviceMesh({form}, '{self._device_type}', stride={strides})"


def init_device_mesh(device_type: str, mesh_shape: tuple[int, ...], *,
                     mesh_dim_names: tuple[str, ...] | None = None,
                     backend_override: dict[Any, Any] | None = None) -> DeviceMesh:
    """A mesh of this shape; the default process group is made if there is none yet."""
    names = None if mesh_dim_names is None else tuple(mesh_dim_names)
    _check_names(names, mesh_shape)
    overrides = None if backend_override is None else tuple(
        _normalize_backend_override(backend_override, len(mesh_shape), names))
    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}. ",
                           "If you maintained a 'torch.device' object, it's recommended to pass "
                           "in 'device.type'.")
    ranks = flambeau.arange(prod(mesh_shape), dtype=flambeau.int32)
    return DeviceMesh(device_type, ranks.view(tuple(mesh_shape)), mesh_dim_names=names,
                      backend_override=overrides)


adopt(globals(), "distributed._mesh_env")
