"""Processes in the order of a grid whose dimensions have names. Here the grid has one process."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.distributed import distributed_c10d as c10d

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The processes `mesh` (their ranks, an array), each with a device of `device_type`.

    >>> from flambeau.distributed.stores import HashStore
    >>> c10d.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].size(), mesh.get_coordinate()
    (1, (0, 0))
    >>> c10d.destroy_process_group()
    """

    def __init__(self, device_type: str, mesh: Any = None, *,
                 mesh_dim_names: Sequence[str] | None = None, backend_override: Any = None,
                 _init_backend: bool = True):
        if mesh is None:
            raise TypeError("DeviceMesh: `mesh`, the ranks of its processes, is needed")
        ranks = mesh if isinstance(mesh, Tensor) else flambeau.tensor(mesh)
        self.mesh = ranks.detach().to(flambeau.int32)
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        _check_names(self.mesh_dim_names, self.shape)
        if self.size() > 1:
            raise RuntimeError("Mesh should not be bigger than default world size 1, but found "
                               f"{self.size()} ranks!")
        if _init_backend and not c10d.is_initialized():
            c10d.init_process_group()
        c10d.only_alone("DeviceMesh")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, of all or along one dimension."""
        return prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process."""
        return c10d.get_rank()

    def get_coordinate(self) -> tuple[int, ...]:
        """Where in the grid this process is."""
        return (0,) * self.ndim

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where along one dimension this process is."""
        self._one_dimension(mesh_dim)
        return 0

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of the processes along one dimension through this one."""
        self._one_dimension(mesh_dim)
        return c10d._get_default_group()

    def get_all_groups(self) -> list[Any]:
        """The group along each dimension."""
        return [c10d._get_default_group()] * self.ndim

    @staticmethod
    def from_group(group: Any, device_type: str, mesh: Any = None, *,
                   mesh_dim_names: Sequence[str] | None = None,
                   backend_override: Any = None) -> DeviceMesh:
        """The mesh of the processes of a group."""
        return DeviceMesh(device_type, [0] if mesh is None else mesh,
                          mesh_dim_names=mesh_dim_names)

    def _one_dimension(self, mesh_dim: int | str | None) -> None:
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions",
                               "Optional kwarg `mesh_dim` needs to be specified when "
                               "device_mesh.ndim > 1.")
        if isinstance(mesh_dim, str):
            self[mesh_dim]

    def _flatten(self, mesh_dim_name: str | None = None,
                 backend_override: Any = None) -> DeviceMesh:
        """All dimensions as one."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        return DeviceMesh(self.device_type, self.mesh.flatten(),
                          mesh_dim_names=(name,) if name else None)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along the named dimensions, through this process."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if any(name not in self.mesh_dim_names for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                           f"{list(self.mesh_dim_names)}.")
        return DeviceMesh(self.device_type, self.mesh.reshape((1,) * len(names)),
                          mesh_dim_names=names)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh) and self.device_type == other.device_type
            and self.mesh_dim_names == other.mesh_dim_names
            and self.mesh.tolist() == other.mesh.tolist())

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def __repr__(self) -> str:
        form = str(self.shape)
        if self.mesh_dim_names is not None:
            form = ", ".join(f"{n}={s}" for n, s in zip(self.mesh_dim_names, self.shape))
            form = f"({form})"
        stride = str(tuple(() for _ in self.shape))
        return f"DeviceMesh({form}, '{self.device_type}', stride={stride})"


def _check_names(names: tuple[str, ...] | None, shape: Sequence[int]) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError("Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                           f"mesh_dim_names {names}")
    if len(names) != len(shape):
        raise RuntimeError("mesh_shape and mesh_dim_names should have same length! Found "
                           f"len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}.")


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *,
                     mesh_dim_names: Sequence[str] | None = None,
                     backend_override: Any = None) -> DeviceMesh:
    """A mesh of this shape; the default process group is made if there is none yet."""
    names = None if mesh_dim_names is None else tuple(mesh_dim_names)
    _check_names(names, mesh_shape)
    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}. "
                           "If you maintained a 'torch.device' object, it's recommended to pass "
                           "in 'device.type'.")
    ranks = flambeau.arange(prod(mesh_shape), dtype=flambeau.int32).view(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=names)
