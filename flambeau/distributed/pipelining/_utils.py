"""What stages know of the tensors they exchange, and which rank has which stage."""
from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import flambeau

from ...fx.node import map_aggregate
from ..tensor import DTensor

if TYPE_CHECKING:
    from ... import fx
    from .._mesh_layout import _MeshLayout
    from ..device_mesh import DeviceMesh
    from ..tensor.placement_types import Placement

MeshCacheKey = tuple[tuple[str, ...], Any]      # the names of a mesh's dimensions, and its layout


class PipeliningMetadataError(RuntimeError):
    """The tensors of a stage are not those that were said or inferred."""


class GetMeshCallback(Protocol):
    """Finds the mesh of the distributed tensors that a stage receives."""

    def __call__(self, mesh_dim_names: tuple[str, ...],
                 mesh_layout: _MeshLayout | None) -> DeviceMesh: ...


@dataclass(slots=True)
class PipeInfo:
    """What a stage knows of the whole pipe."""

    graph: fx.Graph
    num_stages: int
    has_loss_and_backward: bool


# ---- tensors without their values ---------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class _TensorMeta:
    """Shape, stride and dtype of a tensor, and whether it needs a gradient."""

    shape: flambeau.Size
    stride: tuple[int, ...]
    dtype: flambeau.dtype
    requires_grad: bool

    @staticmethod
    def from_tensor(tensor: flambeau.Tensor) -> _TensorMeta:
        return _TensorMeta(tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad)

    def to_tensor(self, device: flambeau.device | str) -> flambeau.Tensor:
        """A tensor like this, whose values are not set."""
        return flambeau.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device,
                                      requires_grad=self.requires_grad)

    def get_diff(self, other: _TensorMeta) -> list[str]:
        """In what the other one differs, in words; whether it needs a gradient does not matter."""
        return [f"{name} mismatch: {getattr(self, name)} vs {getattr(other, name)}"
                for name in ("shape", "stride", "dtype")
                if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class _DTensorMeta(_TensorMeta):
    """The same for a distributed tensor: of this rank's part, and of the whole."""

    global_shape: flambeau.Size = field(default_factory=lambda: flambeau.Size(()))
    global_stride: tuple[int, ...] = ()
    placements: tuple[Placement, ...] = ()
    mesh_dim_names: tuple[str, ...] = ()
    mesh_layout: _MeshLayout | None = None

    @staticmethod
    def from_dtensor(dtensor: DTensor) -> _DTensorMeta:
        local, mesh = dtensor._local_tensor, dtensor.device_mesh
        return _DTensorMeta(local.shape, local.stride(), local.dtype, dtensor.requires_grad,
                            dtensor.shape, dtensor.stride(), tuple(dtensor.placements),
                            tuple(mesh.mesh_dim_names or ()), mesh._layout)

    @property
    def mesh_cache_key(self) -> MeshCacheKey:
        return self.mesh_dim_names, self.mesh_layout

    def to_dtensor(self, device: flambeau.device | str, mesh: DeviceMesh) -> DTensor:
        local = flambeau.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)
        result = DTensor.from_local(local, mesh, self.placements, shape=self.global_shape,
                                    stride=self.global_stride)
        return result.requires_grad_(self.requires_grad)  # type: ignore[return-value]

    def get_diff(self, other: _TensorMeta) -> list[str]:
        found = _TensorMeta.get_diff(self, other)
        if not isinstance(other, _DTensorMeta):
            return [*found, f"type: {type(self).__name__} vs {type(other).__name__}"]
        return found + [f"{name} mismatch: {getattr(self, name)} vs {getattr(other, name)}"
                        for name in ("global_shape", "global_stride", "placements",
                                     "mesh_dim_names", "mesh_layout")
                        if getattr(self, name) != getattr(other, name)]


TensorMeta = _TensorMeta | _DTensorMeta


def extract_tensor_meta(tensor: flambeau.Tensor) -> TensorMeta:
    """Shape, strides and dtype of a tensor; of a `DTensor`, its mesh and placements too."""
    if isinstance(tensor, DTensor):
        return _DTensorMeta.from_dtensor(tensor)
    return _TensorMeta.from_tensor(tensor)


def extract_tensor_metas(tensors: tuple[flambeau.Tensor | None, ...] | None, *,
                         allow_none: bool = False) -> tuple[TensorMeta | None, ...] | None:
    """`extract_tensor_meta` of each tensor, and None of None.

    Raises:
        PipeliningMetadataError: one is None, and `allow_none` does not say that it may be.
    """
    if tensors is None:
        return None
    if not allow_none and any(tensor is None for tensor in tensors):
        raise PipeliningMetadataError("None values are not allowed in tensor metadata tuples. "
                                      "Use allow_none=True for optional values.")
    return tuple(None if tensor is None else extract_tensor_meta(tensor) for tensor in tensors)


def _derive_grad_metas(tensor_metas: tuple[TensorMeta, ...]) -> tuple[TensorMeta | None, ...]:
    """The gradients of plain tensors: like the tensors. Those of distributed tensors may be placed
    otherwise, which only a backward shows: None."""
    return tuple(
        _TensorMeta(meta.shape, meta.stride, meta.dtype, requires_grad=False)
        if meta.requires_grad and not isinstance(meta, _DTensorMeta) else None
        for meta in tensor_metas)


def _make_tensor_from_meta(meta: _TensorMeta, device: flambeau.device | str) -> flambeau.Tensor:
    """A buffer to receive such a tensor into: of a distributed one, this rank's part."""
    return flambeau.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device=device)


# ---- what is known of a stage -------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class _StageForwardMeta:
    """What a stage tells the next one of its outputs."""

    forward_metas: tuple[TensorMeta, ...]


@dataclass(frozen=True, slots=True)
class _StageBackwardMeta:
    """What a stage tells the one before it of the gradients of its inputs."""

    backward_metas: tuple[TensorMeta | None, ...]


@dataclass(slots=True)
class _StageMeta:
    inputs: tuple[TensorMeta, ...] | None = None
    outputs: tuple[TensorMeta, ...] | None = None
    input_grads: tuple[TensorMeta | None, ...] | None = None
    output_grads: tuple[TensorMeta | None, ...] | None = None

    def has_any(self) -> bool:
        return any(metas is not None for metas in (
            self.inputs, self.outputs, self.input_grads, self.output_grads))

    def has_dtensors(self) -> bool:
        return any(isinstance(meta, _DTensorMeta)
                   for metas in (self.inputs, self.outputs, self.input_grads, self.output_grads)
                   for meta in metas or ())

    def is_complete_for_forward(self) -> bool:
        return self.inputs is not None and self.outputs is not None


class InferenceMode(Enum):
    """Whether a stage's tensors are as its user said, or are found by a trial of the model."""

    STATIC = "static"
    DYNAMIC = "dynamic"

    @classmethod
    def needs_dynamic(cls, meta: _StageMeta, stage_has_backward: bool) -> bool:
        if not meta.is_complete_for_forward():
            return True
        return (stage_has_backward and meta.has_dtensors()
                and (meta.input_grads is None or meta.output_grads is None))


class _MeshCache:
    """The meshes of distributed tensors that stages exchange; they do not travel with them."""

    def __init__(self, get_mesh_cb: GetMeshCallback | None = None) -> None:
        self._get_mesh = get_mesh_cb
        self._meshes: dict[MeshCacheKey, DeviceMesh] = {}

    def get_mesh(self, key: MeshCacheKey) -> DeviceMesh:
        if key in self._meshes:
            return self._meshes[key]
        names, layout = key
        wanted = f"mesh_dim_names={names}, mesh_layout={layout}"
        if self._get_mesh is None:
            raise PipeliningMetadataError(
                f"Mesh not found in cache for {wanted}, and no get_mesh callback provided. "
                "Provide a get_mesh callback or use DTensors in static mode.")
        mesh = self._get_mesh(names, layout)
        if mesh is None:
            raise PipeliningMetadataError(
                f"Mesh lookup failed: callback returned None for {wanted}. "
                "Ensure all stages use meshes from the same universe.")
        self._meshes[key] = mesh
        return mesh

    def put(self, key: MeshCacheKey, mesh: DeviceMesh) -> None:
        self._meshes[key] = mesh

    def update_from_tensors(self, tensors: tuple[flambeau.Tensor | None, ...]) -> None:
        for tensor in tensors:
            if isinstance(tensor, DTensor):
                self.put(_DTensorMeta.from_dtensor(tensor).mesh_cache_key, tensor.device_mesh)

    def __contains__(self, key: MeshCacheKey) -> bool:
        return key in self._meshes

    def __len__(self) -> int:
        return len(self._meshes)


# ---- checks -------------------------------------------------------------------------------------

def validate_and_normalize_to_tuple(args: Any, allow_none: bool = False
                                    ) -> tuple[flambeau.Tensor | None, ...] | None:
    """A stage's tensors as a tuple, from one tensor or a sequence."""
    if args is None:
        return None
    if isinstance(args, flambeau.Tensor):
        return (args,)
    if not isinstance(args, (tuple, list)):
        raise PipeliningMetadataError("Stage args must be a tensor, tuple, or list of tensors, "
                                      f"got {type(args).__name__}.")
    for place, value in enumerate(args):
        if value is None:
            if not allow_none:
                raise PipeliningMetadataError(
                    f"Stage arg[{place}] is None. Stage args must be tensors. "
                    "Use kwargs for optional values.")
        elif not isinstance(value, flambeau.Tensor):
            raise PipeliningMetadataError(
                f"Stage arg[{place}] has type {type(value).__name__}. All stage args must be "
                "tensors. Use kwargs for non-tensor inputs.")
    return tuple(args)


def _report(text: str, warning: str, raise_on_mismatch: bool, warn_on_mismatch: bool) -> None:
    if raise_on_mismatch:
        raise PipeliningMetadataError(text)
    if warn_on_mismatch:
        warnings.warn(warning, UserWarning, stacklevel=4)


def validate_metadata(desc: str, expected: TensorMeta, actual: flambeau.Tensor | TensorMeta, *,
                      raise_on_mismatch: bool = False,
                      warn_on_mismatch: bool = False) -> list[str]:
    """In what a tensor differs from what was expected; an error or a warning if it does."""
    meta: Any = extract_tensor_meta(actual) if isinstance(actual, flambeau.Tensor) else actual
    if type(expected) is not type(meta):
        found = [f"type: expected {type(expected).__name__}, got {type(meta).__name__}"]
    else:
        found = expected.get_diff(meta)
    if found:
        diff = "; ".join(found)
        _report(f"{desc}: {diff}",
                f"{desc}: Metadata mismatch. {diff}. Using dynamically inferred metadata instead.",
                raise_on_mismatch, warn_on_mismatch)
    return found


def validate_tensors_metadata(desc: str, expected: tuple[TensorMeta | None, ...],
                              actual: tuple[flambeau.Tensor | TensorMeta | None, ...], *,
                              raise_on_mismatch: bool = True,
                              warn_on_mismatch: bool = False) -> list[str]:
    """`validate_metadata` of each of several tensors."""
    if len(expected) != len(actual):
        text = f"{desc}: expected {len(expected)} tensors, got {len(actual)}"
        _report(text, text, raise_on_mismatch, warn_on_mismatch)
        return [text]
    found: list[str] = []
    for place, (meta, tensor) in enumerate(zip(expected, actual)):
        name = f"{desc}[{place}]"
        if meta is not None and tensor is not None:
            found += validate_metadata(name, meta, tensor, raise_on_mismatch=raise_on_mismatch,
                                       warn_on_mismatch=warn_on_mismatch)
        elif meta is not tensor:
            text = f"{name}: expected " + ("None, got metadata" if meta is None
                                           else "metadata, got None")
            _report(text, text, raise_on_mismatch, warn_on_mismatch)
            found.append(text)
    return found


def validate_static_arg_grad_correspondence(stage_index: int, args: tuple[flambeau.Tensor, ...],
                                            grads: tuple[flambeau.Tensor | None, ...],
                                            is_input: bool) -> None:
    """Check that the gradients a user gives for a stage fit the tensors he gives."""
    tensors = "input_args" if is_input else "output_args"
    gradients = "input_grads" if is_input else "output_grads"
    stage = f"Stage {stage_index}: "
    if len(args) != len(grads):
        raise PipeliningMetadataError(
            f"{stage}{gradients} length ({len(grads)}) does not match {tensors} length "
            f"({len(args)}). Each forward tensor must have a corresponding gradient entry "
            "(use None for tensors that don't require grad).")
    for place, (tensor, grad) in enumerate(zip(args, grads)):
        given, gradient = f"{tensors}[{place}]", f"{gradients}[{place}]"
        if not tensor.requires_grad:
            if grad is not None:
                raise PipeliningMetadataError(
                    f"{stage}{given} has requires_grad=False, but {gradient} is not None "
                    f"({type(grad).__name__}). Non-differentiable tensors must have None as their "
                    "gradient entry.")
        elif grad is None:
            warnings.warn(f"{stage}{given} has requires_grad=True, but {gradient} is None. This is "
                          "legal at pipeline boundaries but may indicate a missing gradient.",
                          UserWarning, stacklevel=2)
        elif isinstance(tensor, DTensor) and not isinstance(grad, DTensor):
            raise PipeliningMetadataError(
                f"{stage}{given} is a DTensor with requires_grad=True, but {gradient} is "
                f"{type(grad).__name__}, expected DTensor or None. DTensor gradients may have "
                "different placements than forward tensors.")


# ---- values and stages --------------------------------------------------------------------------

def to_local_if_dtensor(tensor: flambeau.Tensor, detach: bool = False) -> flambeau.Tensor:
    """This rank's part of a distributed tensor; another tensor itself."""
    if isinstance(tensor, DTensor):
        return tensor._local_tensor if detach else tensor.to_local()
    return tensor.detach() if detach and isinstance(tensor, flambeau.Tensor) else tensor


def flatten_args(args: Any, *, detach: bool = False) -> Any:
    """The leaves of a structure, as a list; with `detach` also the structure, its tensors as
    leaves of a new graph."""
    flat: list[Any] = []

    def collect(value: Any) -> Any:
        if detach and isinstance(value, flambeau.Tensor):
            value = value.detach().requires_grad_(value.requires_grad)
        flat.append(value)
        return value

    structure = map_aggregate(args, collect)
    return (structure, flat) if detach else flat


def flatten_args_detach(args: Any) -> tuple[Any, list[Any]]:
    return flatten_args(args, detach=True)


def generate_stage_to_rank_mapping(pp_size: int, num_stages: int,
                                   style: str = "loop") -> dict[int, int]:
    """The rank of each stage: round and round in a loop, there and back in a V.

    >>> from flambeau.distributed.pipelining._utils import generate_stage_to_rank_mapping
    >>> generate_stage_to_rank_mapping(2, 4, style="v")
    {0: 0, 1: 1, 2: 1, 3: 0}
    """
    if style == "loop":
        return {stage: stage % pp_size for stage in range(num_stages)}
    if style != "v":
        raise ValueError(f"Style {style} is not supported.")
    if num_stages % pp_size:
        raise ValueError(f"num_stages {num_stages} must be evenly divisible by pp_size {pp_size} "
                         "for V schedules")
    period = 2 * pp_size
    return {stage: min(stage % period, period - 1 - stage % period)
            for stage in range(num_stages)}


def generate_rank_to_stage_mapping(pp_size: int, num_stages: int,
                                   style: str = "loop") -> dict[int, list[int]]:
    """The stages of each rank, in order."""
    stages = defaultdict(list)
    for stage, rank in generate_stage_to_rank_mapping(pp_size, num_stages, style).items():
        stages[rank].append(stage)
    return dict(sorted(stages.items()))
