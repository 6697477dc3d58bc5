"""`ShardedTensor`: a tensor whose pieces are at several processes."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard import sharding_spec as shard_spec
from flambeau.distributed._shard._utils import DEPRECATE_MSG, narrow_tensor
from flambeau.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed._shard.sharded_tensor.reshard import (
    reshard_local_shard,
    reshuffle_local_shard,
)
from flambeau.distributed._shard.sharded_tensor.shard import Shard
from flambeau.distributed._shard.sharded_tensor.utils import (
    _flatten_tensor_size,
    _parse_and_validate_remote_device,
    _validate_output_tensor_for_gather,
    build_global_metadata,
    build_metadata_from_local_shards,
    validate_local_shard,
)
from flambeau.distributed._shard.sharding_spec.api import _dispatch_custom_op, _has_custom_op
from flambeau.transforms.watched_members import watch_class

_SHARDED_OPS: dict[Callable[..., Any], Callable[..., Any]] = {}
_CUSTOM_SHARDED_OPS: dict[Callable[..., Any], Callable[..., Any]] = {}


class ShardedTensorBase(Tensor):
    """Pieces of a tensor, without any processes to speak to."""

    _sharding_spec: shard_spec.ShardingSpec
    _metadata: ShardedTensorMetadata
    _local_shards: list[Shard]

    @staticmethod
    def __new__(cls, sharding_spec: shard_spec.ShardingSpec, *size: Any, **kwargs: Any) -> Any:
        if not isinstance(sharding_spec, shard_spec.ShardingSpec):
            raise ValueError(f"Expecting ShardingSpec but got: {type(sharding_spec)}")
        sizes = _flatten_tensor_size(size)
        options = {key: kwargs[key] for key in ("dtype", "layout", "pin_memory", "requires_grad")
                   if kwargs.get(key) is not None}
        properties = TensorProperties(**{"dtype": flambeau.get_default_dtype(), **options})
        about = sharding_spec.build_metadata(sizes, tensor_properties=properties)
        return cls._wrapper(sharding_spec, about)

    @classmethod
    def _wrapper(cls, sharding_spec: Any, about: ShardedTensorMetadata) -> Any:
        properties = about.tensor_properties
        made = Tensor._make_wrapper_subclass(
            cls, about.size, dtype=properties.dtype, layout=properties.layout,
            pin_memory=properties.pin_memory, requires_grad=properties.requires_grad)
        made._sharding_spec, made._metadata, made._local_shards = sharding_spec, about, []
        return made

    def metadata(self) -> ShardedTensorMetadata:
        """All pieces, the shape and the type of the tensor."""
        return self._metadata

    def local_shards(self) -> list[Shard]:
        """The pieces of this process."""
        return self._local_shards

    @classmethod
    def _init_from_local_shards_and_global_metadata(
            cls, local_shards: list[Shard], sharded_tensor_metadata: ShardedTensorMetadata,
            sharding_spec: Any = None) -> Any:
        """The tensor of which these are the pieces here."""
        shards = sharded_tensor_metadata.shards_metadata
        if not shards:
            raise ValueError("shards_metadata must not be empty!")
        if sharded_tensor_metadata.tensor_properties.layout != flambeau.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        spec = sharding_spec
        if spec is None:
            spec = shard_spec._infer_sharding_spec_from_shards_metadata(shards)
        made = ShardedTensor._wrapper(spec, sharded_tensor_metadata)
        made._local_shards = local_shards
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(
            f"A {cls.__name__} object is being used from c++ while calling "
            f"{func.__module__}.{func.__name__} but the there is no custom __torch_dispatch__ "
            "implementation for it.")


class ShardedTensor(ShardedTensorBase):
    """A tensor of shape `size` of which each process of a group has pieces, as `sharding_spec`
    says. Few ops work on it; `local_shards` gives the pieces.

    >>> from flambeau import distributed as dist
    >>> from flambeau.distributed._shard import sharded_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> spec = shard_spec.ChunkShardingSpec(0, ["rank:0/cpu"])
    >>> sharded_tensor.ones(spec, 2).local_shards()[0].tensor
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """

    @staticmethod
    def __new__(cls, sharding_spec: shard_spec.ShardingSpec, *size: Any, **kwargs: Any) -> Any:
        return super().__new__(cls, sharding_spec, *size, **{
            key: value for key, value in kwargs.items()
            if key not in ("process_group", "init_rrefs")})

    def __init__(self, sharding_spec: shard_spec.ShardingSpec, *size: Any,
                 dtype: flambeau.dtype | None = None,
                 layout: flambeau.layout = flambeau.strided, requires_grad: bool = False,
                 pin_memory: bool = False,
                 memory_format: flambeau.memory_format = flambeau.contiguous_format,
                 process_group: Any = None, init_rrefs: bool = False):
        super().__init__()
        self._prepare_init(process_group=process_group, init_rrefs=init_rrefs)
        if layout != flambeau.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        if memory_format != flambeau.contiguous_format:
            raise ValueError("Only torch.contiguous_format memory_format is currently supported")
        self._metadata.tensor_properties.memory_format = memory_format
        rank = dist.get_rank()
        for shard in self._metadata.shards_metadata:
            owner, device = _parse_and_validate_remote_device(self._process_group,
                                                              shard.placement)
            if owner == rank:
                tensor = _create_tensor_from_params(
                    shard.shard_sizes, local_device=device,
                    tensor_properties=self._metadata.tensor_properties)
                self._local_shards.append(Shard(tensor, shard))
        self._post_init()

    def _prepare_init(self, process_group: Any = None, init_rrefs: bool = False) -> None:
        self._init_rrefs = init_rrefs
        self._process_group = self._normalize_pg(process_group)
        self._remote_shards: dict[int, list[Any]] = {}

    def _post_init(self) -> None:
        if self._init_rrefs:
            raise NotImplementedError("ShardedTensor: init_rrefs=True")

    @staticmethod
    def _normalize_pg(process_group: Any) -> Any:
        return dist._get_default_group() if process_group is None else process_group

    def _get_preferred_device(self) -> flambeau.device:
        """Where collectives of this tensor happen."""
        return flambeau.device("cpu")

    # ---- pieces -------------------------------------------------------------------------------

    def is_pinned(self) -> bool:
        """Whether an accelerator can copy from the pieces while others run."""
        return self._metadata.tensor_properties.pin_memory

    def local_tensor(self) -> Tensor:
        """The one piece of this process."""
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported. Number of shards: "
                                      f"{len(self._local_shards)}")
        return self._local_shards[0].tensor

    def sharding_spec(self) -> shard_spec.ShardingSpec:
        """How the tensor is cut."""
        return self._sharding_spec

    def remote_shards(self) -> dict[int, list[Any]]:
        """References to the pieces of other processes; there are none."""
        raise RuntimeError("ShardedTensor created with init_rrefs=False, no RRefs to remote "
                           "shards available")

    def gather(self, dst: int = 0, out: Tensor | None = None, enforce_dtype: bool = False,
               dtype: flambeau.dtype | None = None) -> None:
        """Put the whole tensor into `out`, at process `dst`."""
        group, rank = self._process_group, dist.get_rank(self._process_group)
        _validate_output_tensor_for_gather(rank, dst, self._metadata.size, out)
        if enforce_dtype:
            warnings.warn("`enforce_dtype` is deprecated. Please use `dtype` instead.",
                          FutureWarning, stacklevel=2)
            if out is not None and out.dtype != self._metadata.tensor_properties.dtype:
                raise ValueError("Invalid usage of tensors with different dtypesFound "
                                 f"{self._metadata.tensor_properties.dtype} and  {out.dtype}")
        kind = None if enforce_dtype else dtype or flambeau.get_default_dtype()
        mine = [(shard.metadata, shard.tensor.detach().to(kind or shard.tensor.dtype))
                for shard in self._local_shards]
        every: Any = [None] * dist.get_world_size(group) if rank == dst else None
        dist.gather_object(mine, every, group=group, group_dst=dst)
        if out is not None:
            for about, tensor in (pair for pairs in every or () for pair in pairs):
                narrow_tensor(out.detach(), about).copy_(tensor)

    def reshard(self, resharding_spec: shard_spec.ShardingSpec) -> ShardedTensor:
        """The same tensor, cut in another way."""
        warnings.warn(DEPRECATE_MSG, FutureWarning, stacklevel=2)
        if not (isinstance(resharding_spec, shard_spec.ChunkShardingSpec)
                and isinstance(self._sharding_spec, shard_spec.ChunkShardingSpec)):
            raise NotImplementedError("Only ChunkShardingSpec supported for reshard.")
        shards = self.local_shards()
        if len(shards) != 1:
            raise NotImplementedError("Only single local shard supported for reshard. Number of "
                                      f"shards: {len(shards)}")
        # Pieces of one form only change their owners.
        same = self._sharding_spec.dim == resharding_spec.dim
        if same and self._sharding_spec.placements == resharding_spec.placements:
            return self
        move = reshuffle_local_shard if same else reshard_local_shard
        local, metadata = move(shards[0].tensor, self.size(), self._sharding_spec,
                               resharding_spec, self._process_group)
        self._local_shards, self._metadata.shards_metadata = local, metadata
        self._sharding_spec = resharding_spec
        return self

    # ---- copies -------------------------------------------------------------------------------

    def _like(self, change: Callable[[Tensor], Tensor], group: Any = None) -> ShardedTensor:
        """The sharded tensor of changed pieces."""
        about = copy.deepcopy(self._metadata)
        shards, device = [], None
        for shard in self._local_shards:
            tensor = change(shard.tensor)
            metadata = copy.deepcopy(shard.metadata)
            placement = metadata.placement
            if placement is not None and placement.device() != tensor.device:
                placement._device = tensor.device
            shards.append(Shard(tensor, metadata))
            about.tensor_properties.dtype = tensor.dtype
            about.tensor_properties.requires_grad = tensor.requires_grad
            device = tensor.device
        for place in (piece.placement for piece in about.shards_metadata if device is not None):
            if place is not None and place.device() != device:
                place._device = device
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, sharded_tensor_metadata=about, init_rrefs=self._init_rrefs,
            process_group=self._process_group if group is None else group)

    def cpu(self, memory_format: flambeau.memory_format = flambeau.preserve_format,
            process_group: Any = None) -> ShardedTensor:
        """The tensor in main memory."""
        if memory_format not in (flambeau.preserve_format, flambeau.contiguous_format):
            raise RuntimeError("Only `torch.contiguous_format` or `torch.preserve_format` is "
                               "supported!")
        if all(piece.placement is None or piece.placement.device().type == "cpu"
               for piece in self._metadata.shards_metadata):
            return self
        return self._like(lambda x: x.cpu(), process_group)

    def cuda(self, device: Any = None, non_blocking: bool = False,
             memory_format: flambeau.memory_format = flambeau.preserve_format,
             process_group: Any = None) -> ShardedTensor:
        """The tensor on a GPU; there is none."""
        return self._like(lambda x: x.cuda(), process_group)

    def to(self, *args: Any, **kwargs: Any) -> ShardedTensor:
        """The tensor with another type or device."""
        group = kwargs.pop("process_group", None)
        if all(shard.tensor.to(*args, **kwargs) is shard.tensor for shard in self._local_shards):
            return self
        return self._like(lambda x: x.to(*args, **kwargs), group)

    # ---- making -------------------------------------------------------------------------------

    @classmethod
    def _init_from_local_shards(cls, local_shards: list[Shard], *global_size: Any,
                                process_group: Any = None, init_rrefs: bool = False
                                ) -> ShardedTensor:
        """The tensor of this size of which these are the pieces here."""
        group = cls._normalize_pg(process_group)
        size = _flatten_tensor_size(global_size)
        mine = None
        if local_shards:
            mine = build_metadata_from_local_shards(local_shards, size, dist.get_rank(group),
                                                    group)
        every: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(every, mine, group=group)
        about = build_global_metadata(every)
        spec = shard_spec._infer_sharding_spec_from_shards_metadata(about.shards_metadata)
        made = cls._wrapper(spec, about)
        made._prepare_init(process_group=process_group, init_rrefs=init_rrefs)
        made._local_shards = local_shards
        made._post_init()
        return made

    @classmethod
    def _init_from_local_tensor(cls, local_tensor: Tensor, sharding_spec: shard_spec.ShardingSpec,
                                *global_size: Any, process_group: Any = None,
                                init_rrefs: bool = False) -> ShardedTensor:
        """The tensor of this size of which `local_tensor` is the piece here; nothing is asked of
        the other processes."""
        warnings.warn(DEPRECATE_MSG, FutureWarning, stacklevel=2)
        if not local_tensor.is_contiguous():
            raise ValueError("local_tensor is not a contiguous Tensor.")
        group = cls._normalize_pg(process_group)
        about = sharding_spec.build_metadata(
            _flatten_tensor_size(global_size),
            tensor_properties=TensorProperties.create_from_tensor(local_tensor))
        shards = []
        for shard in about.shards_metadata:
            owner, _ = _parse_and_validate_remote_device(group, shard.placement)
            if owner == dist.get_rank(group):
                shards.append(Shard(local_tensor, shard))
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, about, process_group=process_group, init_rrefs=init_rrefs,
            sharding_spec=sharding_spec)

    @classmethod
    def _init_from_local_shards_and_global_metadata(
            cls, local_shards: list[Shard], sharded_tensor_metadata: ShardedTensorMetadata,
            process_group: Any = None, init_rrefs: bool = False, sharding_spec: Any = None
    ) -> ShardedTensor:
        """The tensor of which these are the pieces here; nothing is asked of the other
        processes."""
        group = cls._normalize_pg(process_group)
        rank = dist.get_rank(group)
        mine = []
        for piece in sharded_tensor_metadata.shards_metadata:
            owner, _ = _parse_and_validate_remote_device(group, piece.placement)
            if owner == rank:
                mine.append(piece)
        if not sharded_tensor_metadata.shards_metadata:
            raise ValueError("shards_metadata must not be empty!")
        if len(local_shards) != len(mine):
            raise RuntimeError(f"Number of local shards ({len(local_shards)}) does not match "
                               f"number of local shards metadata in sharded_tensor_metadata "
                               f"({len(mine)}) on rank ({rank}) ")
        for shard in local_shards:
            validate_local_shard(shard, sharded_tensor_metadata.tensor_properties)
        shard_spec._internals.validate_non_overlapping_shards_metadata(
            sharded_tensor_metadata.shards_metadata)
        shard_spec._internals.check_tensor(sharded_tensor_metadata.shards_metadata,
                                           list(sharded_tensor_metadata.size))
        made = super()._init_from_local_shards_and_global_metadata(
            local_shards, sharded_tensor_metadata, sharding_spec)
        made._prepare_init(process_group=process_group, init_rrefs=init_rrefs)
        made._post_init()
        return made

    # ---- ops ----------------------------------------------------------------------------------

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        warnings.warn(DEPRECATE_MSG, FutureWarning, stacklevel=2)

        def call(this: ShardedTensor) -> Any:
            spec = this.sharding_spec()
            if _has_custom_op(spec, func):
                return _dispatch_custom_op(spec, func, types, args, kwargs, this._process_group)
            for table in (_CUSTOM_SHARDED_OPS, _SHARDED_OPS):
                if func in table:
                    return table[func](types, args, kwargs, this._process_group)
            raise RuntimeError(f"torch function '{func.__name__}', with args: {args} and kwargs: "
                               f"{kwargs} not supported for ShardedTensor!")
        for x in flambeau.utils._pytree.tree_leaves((args, kwargs or {})):
            if isinstance(x, ShardedTensor):
                return call(x)
        raise RuntimeError(f"torch function '{func.__name__}', with args: {args} and kwargs: "
                           f"{kwargs} not supported for ShardedTensor!")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"ShardedTensor({self._metadata})"

    # ---- pickling -----------------------------------------------------------------------------

    class ProcessGroupState(NamedTuple):
        """Which processes the tensor was shared by, when it is pickled."""
        local_rank: int
        global_rank: int
        local_world_size: int
        global_world_size: int

    def __getstate__(self) -> tuple[Any, ...]:
        state = ShardedTensor.ProcessGroupState(
            dist.get_rank(self._process_group), dist.get_rank(),
            dist.get_world_size(self._process_group), dist.get_world_size())
        return self._local_shards, self._metadata, state, self._sharding_spec, self._init_rrefs

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if not dist.is_initialized():
            raise RuntimeError("Need to initialize default process group using "
                               '"init_process_group" before loading ShardedTensor')
        (self._local_shards, self._metadata, group_state, self._sharding_spec,
         self._init_rrefs) = state
        from flambeau.distributed._shard.api import _get_current_process_group
        self._process_group = _get_current_process_group()
        self._remote_shards = {}
        for name, was, now in (
                ("Local rank", group_state.local_rank, dist.get_rank(self._process_group)),
                ("Global rank", group_state.global_rank, dist.get_rank()),
                ("Local world size", group_state.local_world_size,
                 dist.get_world_size(self._process_group)),
                ("Global world size", group_state.global_world_size, dist.get_world_size())):
            if was != now:
                raise RuntimeError(f"{name} at save time was {was}, but at load time was {now}")
        self._post_init()

    def __reduce_ex__(self, proto: Any) -> Any:
        properties = self._metadata.tensor_properties
        return _rebuild, (type(self), properties.dtype, tuple(self._metadata.size),
                          properties.requires_grad), self.__getstate__()


def _rebuild(cls: type, dtype: flambeau.dtype, size: tuple[int, ...], requires_grad: bool) -> Any:
    return Tensor._make_wrapper_subclass(cls, size, dtype=dtype, requires_grad=requires_grad)


def _create_tensor_from_params(*size: Any, local_device: flambeau.device,
                               tensor_properties: TensorProperties) -> Tensor:
    """An empty piece."""
    sizes = _flatten_tensor_size(size)
    return flambeau.empty(sizes, dtype=tensor_properties.dtype, device=local_device,
                          requires_grad=tensor_properties.requires_grad)


watch_class(ShardedTensor)      # what has no values here is refused, and not only ops
