"""`LocalShardsWrapper`: several pieces that a process has of one tensor, as one local tensor."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

aten = flambeau.ops.aten


class LocalShardsWrapper(Tensor):
    """The pieces of a tensor that are in this process, and where in the whole they lie: beside
    each other, or one after the other if they have one dimension.

    >>> both = LocalShardsWrapper([torch.ones(2, 2), torch.ones(2, 3)], [(0, 0), (0, 2)])
    >>> both.shape, both.local_offsets()
    (torch.Size([2, 5]), [torch.Size([0, 0]), torch.Size([0, 2])])
    """

    __slots__ = ["_local_shards", "_storage_meta"]
    _local_shards: list[Tensor]
    _storage_meta: TensorStorageMetadata
    __torch_function__ = flambeau._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_shards: list[Tensor], local_offsets: list[tuple[int, ...]]
                ) -> LocalShardsWrapper:
        assert all(t.device == local_shards[0].device for t in local_shards), (
            "all pieces have to be on one device")
        chunks = [ChunkStorageMetadata(flambeau.Size(offset), t.shape)
                  for t, offset in zip(local_shards, local_offsets)]
        size = _whole_size(local_shards)
        first = local_shards[0] if local_shards else flambeau.empty(size)
        made = Tensor._make_wrapper_subclass(
            cls, size, dtype=first.dtype, device=first.device, layout=first.layout,
            requires_grad=first.requires_grad)
        made._local_shards = local_shards
        made._storage_meta = TensorStorageMetadata(
            TensorProperties(dtype=first.dtype, layout=first.layout,
                             requires_grad=first.requires_grad,
                             memory_format=flambeau.contiguous_format,
                             pin_memory=first.is_pinned()),
            size, chunks or [ChunkStorageMetadata(flambeau.Size([0, 0]), size)])
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        handler = _HANDLERS.get(func)
        if handler is None:
            raise NotImplementedError(f"{func} is not supported for LocalShardsWrapper!")
        return getattr(cls, handler)(args, kwargs or {})

    def _with(self, shards: list[Tensor]) -> LocalShardsWrapper:
        return LocalShardsWrapper(shards, self.local_offsets())         # type: ignore[arg-type]

    # ---- the ops that there are -----------------------------------------------------------------

    @staticmethod
    def handle_all_gather_into_tensor(args: Any, kwargs: Any) -> Tensor:
        """The pieces of all processes, as one tensor."""
        wrapper = args[0]
        joined = wrapper._local_shards[0] if len(wrapper._local_shards) == 1 else \
            flambeau.cat(wrapper._local_shards, _dim_of(wrapper._local_shards))
        return flambeau.ops._c10d_functional.all_gather_into_tensor.default(
            joined, *args[1:], **kwargs)

    @staticmethod
    def handle_wait_tensor(args: Any, kwargs: Any) -> Tensor:
        """The tensor of a collective, once it is there."""
        return flambeau.ops._c10d_functional.wait_tensor(args[0])

    @staticmethod
    def _each(op: Any, args: Any, kwargs: Any) -> LocalShardsWrapper:
        return args[0]._with([op(t, *args[1:], **kwargs) for t in args[0]._local_shards])

    @staticmethod
    def handle_to_copy(args: Any, kwargs: Any) -> LocalShardsWrapper:
        """The pieces in another type, or elsewhere."""
        return LocalShardsWrapper._each(aten._to_copy.default, args, kwargs)

    @staticmethod
    def handle_view(args: Any, kwargs: Any) -> LocalShardsWrapper:
        """A view of the one piece, or of all with the size that they have."""
        wrapper, size = args[0], args[1]
        shards = wrapper._local_shards
        if len(shards) == 1:
            return wrapper._with([shards[0].view(size)])
        if tuple(size) != tuple(wrapper.shape):
            raise AssertionError(f"a view of {len(shards)} pieces of size {tuple(wrapper.shape)} "
                                 f"cannot have size {tuple(size)}")
        return wrapper._with([t.view(t.shape) for t in shards])

    @staticmethod
    def handle_equal(args: Any, kwargs: Any) -> bool:
        """Are the pieces the same, in the same places?"""
        a, b = args
        if not isinstance(a, LocalShardsWrapper) or not isinstance(b, LocalShardsWrapper):
            return False
        return len(a._local_shards) == len(b._local_shards) and \
            a.local_offsets() == b.local_offsets() and all(
                flambeau.equal(x, y) for x, y in zip(a._local_shards, b._local_shards))

    @staticmethod
    def handle_detach(args: Any, kwargs: Any) -> LocalShardsWrapper:
        """The pieces, outside the graph."""
        return args[0]._with([t.detach() for t in args[0]._local_shards])

    @staticmethod
    def handle_clone(args: Any, kwargs: Any) -> LocalShardsWrapper:
        """Copies of the pieces."""
        wanted = kwargs.get("memory_format")
        if wanted not in (None, flambeau.preserve_format):
            raise NotImplementedError(f"{wanted} is not supported for LocalShardsWrapper!")
        return args[0]._with([t.clone() for t in args[0]._local_shards])

    @staticmethod
    def handle_new_empty(args: Any, kwargs: Any) -> LocalShardsWrapper:
        """Memory for pieces of the same sizes."""
        return args[0]._with([t.new_empty(t.shape) for t in args[0]._local_shards])

    # ---- what it is made of ---------------------------------------------------------------------

    @property
    def device(self) -> flambeau.device:
        """Where the pieces are."""
        return self._local_shards[0].device if self._local_shards else flambeau.device("meta")

    @property
    def is_meta(self) -> bool:
        """Have the pieces no values?"""
        return self._local_shards[0].is_meta if self._local_shards else True

    def is_pinned(self) -> bool:
        """Is the memory pinned?"""
        return self._storage_meta.properties.pin_memory

    def requires_grad_(self, requires_grad: bool = True) -> LocalShardsWrapper:
        """Let all pieces have gradients, or none."""
        self._storage_meta.properties.requires_grad = requires_grad
        for shard in self._local_shards:
            shard.requires_grad_(requires_grad)
        return self

    def local_shards(self) -> list[Tensor]:
        """The pieces."""
        return self._local_shards

    def local_sizes(self) -> list[flambeau.Size]:
        """The sizes of the pieces."""
        return [chunk.sizes for chunk in self._storage_meta.chunks]

    def local_offsets(self) -> list[flambeau.Size]:
        """Where the pieces begin."""
        return [chunk.offsets for chunk in self._storage_meta.chunks]

    @property
    def local_chunks(self) -> list[ChunkStorageMetadata]:
        """Where the pieces lie."""
        return self._storage_meta.chunks

    def storage_metadata(self) -> TensorStorageMetadata:
        """What checkpoints say of it."""
        return self._storage_meta

    def is_empty_shard(self) -> bool:
        """Are there no elements?"""
        return self._storage_meta.size[0] == 0 and self._storage_meta.size[1] == 0

    def _get_tensor_size_bytes(self) -> int:
        return sum(t.nbytes for t in self._local_shards)

    # ---- checkpoints ----------------------------------------------------------------------------

    def __create_write_items__(self, fqn: str, object: Any) -> list[WriteItem]:
        """Each piece is written for itself."""
        meta = self._storage_meta
        return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD,
                          tensor_data=TensorWriteData(chunk, meta.properties, meta.size))
                for chunk in self.local_chunks]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        """Where the pieces lie."""
        return self._storage_meta.chunks

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        """The piece that begins at an offset."""
        if index.index is not None and index.index < len(self._local_shards) and \
                self.local_offsets()[index.index] == index.offset:
            return self._local_shards[index.index]
        for shard, offset in zip(self._local_shards, self.local_offsets()):
            if offset == index.offset:
                return shard
        raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"LocalShardsWrapper:{self._local_shards} {self._storage_meta}"

    __str__ = __repr__


_HANDLERS = {
    flambeau.ops._c10d_functional.all_gather_into_tensor.default: "handle_all_gather_into_tensor",
    flambeau.ops._c10d_functional.wait_tensor.default: "handle_wait_tensor",
    aten._to_copy.default: "handle_to_copy", aten.view.default: "handle_view",
    aten.equal.default: "handle_equal", aten.detach.default: "handle_detach",
    aten.clone.default: "handle_clone", aten.new_empty.default: "handle_new_empty"}


def _dim_of(shards: list[Tensor]) -> int:
    """The dimension along which pieces lie one after the other."""
    return 1 if shards[0].ndim > 1 else 0


def _whole_size(shards: list[Tensor]) -> flambeau.Size:
    if not shards:
        return flambeau.Size([0, 0])
    size, dim = list(shards[0].shape), _dim_of(shards)
    size[dim] = sum(t.shape[dim] for t in shards)
    return flambeau.Size(size)
