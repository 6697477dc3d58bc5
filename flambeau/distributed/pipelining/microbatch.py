"""Cut the arguments of a step into microbatches, and put the results together again."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import flambeau

from ...nn.attention.flex_attention import BlockMask
from ...utils._pytree import tree_flatten, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0
# for debugging: a microbatch has the whole batch's size, with zeros for the rows of the others
_debug_mask_minibatches = False


class _CustomReducer:
    """Combines the values of all microbatches by a function, beginning at a value."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]):
        self.init_value = init_value
        self.reduce_fn = reduce_fn


class _LossReducer(_CustomReducer):
    pass


sum_reducer = _LossReducer(flambeau.tensor(0.0), operator.add)


class TensorChunkSpec:
    """The dimension along which a tensor is cut into microbatches.

    >>> from flambeau.distributed.pipelining.microbatch import TensorChunkSpec
    >>> print(TensorChunkSpec.from_tuple((0, 1))[1])
    TensorChunkSpec(1)
    """

    split_dim: int

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """A spec for each dimension given: those of the positional arguments of a step."""
        return tuple(map(TensorChunkSpec, chunk_dims))

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """A spec for each dimension given by name: those of the keyword arguments of a step."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """The spec of an argument that every microbatch gets whole."""


def split_args_kwargs_into_chunks(
        args: tuple[Any, ...], kwargs: dict[str, Any] | None, chunks: int,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None) -> tuple[list[tuple],
                                                                              list[dict]]:
    """The arguments of each microbatch.

    Without a spec, tensors and block masks are cut along their first dimension, and all else goes
    to every microbatch. There are fewer microbatches than `chunks` where a tensor is shorter.

    >>> from flambeau.distributed.pipelining.microbatch import split_args_kwargs_into_chunks
    >>> split_args_kwargs_into_chunks((torch.arange(4), "mean"), {}, 2)
    ([(tensor([0, 1]), 'mean'), (tensor([2, 3]), 'mean')], [{}, {}])
    """
    kwargs = {} if kwargs is None else kwargs
    if args_chunk_spec is None:
        args_chunk_spec = _default_spec(args)
    if kwargs_chunk_spec is None:
        kwargs_chunk_spec = _default_spec(kwargs)
    by_place, by_name = dict(enumerate(args)), dict(enumerate(args_chunk_spec))
    chunks = min(chunks, *_lengths(by_place, by_name), *_lengths(kwargs, kwargs_chunk_spec),
                 chunks)
    args_split = _shard_dict_of_args(by_place, by_name, chunks)
    kwargs_split = _shard_dict_of_args(kwargs, kwargs_chunk_spec, chunks)
    return [tuple(chunk[place] for place in range(len(args))) for chunk in args_split], kwargs_split


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (BlockMask, TensorChunkSpec))


def _default_spec(values: Any) -> Any:
    """The spec of tensors that are cut along their first dimension, in the shape of `values`."""
    leaves, structure = tree_flatten(values, is_leaf=_is_leaf)
    cut = (flambeau.Tensor, BlockMask)
    return tree_unflatten([TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(leaf, cut)
                           else _Replicate() for leaf in leaves], structure)


def _pairs(values: dict, specs: dict) -> list[tuple[Any, list[tuple[Any, Any]], Any]]:
    """For each argument: its name, its leaves with their specs, and its structure."""
    if set(values) != set(specs):
        raise AssertionError(f"args_dict.keys() = {list(values)} args_chunk_spec.keys() = "
                             f"{list(specs)}")
    result = []
    for name, value in values.items():
        leaves, structure = tree_flatten(value, is_leaf=_is_leaf)
        kinds, _ = tree_flatten(specs[name], is_leaf=_is_leaf)
        if specs[name] is None:
            raise AssertionError(f"Expected TensorChunkSpec, got {type(None)}")
        if len(leaves) != len(kinds):
            raise ValueError(f"argument {name!r} has {len(leaves)} values and its chunk spec "
                             f"{len(kinds)}")
        result.append((name, list(zip(leaves, kinds)), structure))
    return result


def _is_replicated(spec: Any) -> bool:
    return spec is _Replicate or isinstance(spec, _Replicate)


def _lengths(values: dict, specs: dict) -> list[int]:
    """The sizes of what is cut, along the dimensions in which it is cut."""
    return [value.size(spec.split_dim) for _, pairs, _ in _pairs(values, specs)
            for value, spec in pairs
            if isinstance(value, flambeau.Tensor) and not _is_replicated(spec) and value.dim()]


def _split(value: Any, spec: Any, num_chunks: int) -> Sequence[Any]:
    if _is_replicated(spec):
        return [value] * num_chunks
    if isinstance(value, flambeau.Tensor) and isinstance(spec, TensorChunkSpec):
        return _split_tensor(value, spec, num_chunks)
    if isinstance(value, BlockMask) and isinstance(spec, TensorChunkSpec):
        if spec.split_dim != 0:
            raise AssertionError("Block masks are cut along their batch only")
        return _split_block_mask(value, num_chunks)
    raise ValueError(f"Unsupported chunk spec: {spec} and value: {value} combination.")


def _shard_dict_of_args(args_dict: dict, args_chunk_spec: dict, num_chunks: int) -> list[dict]:
    """The arguments by name, once for each of the chunks."""
    result: list[dict] = [{} for _ in range(num_chunks)]
    for name, pairs, structure in _pairs(args_dict, args_chunk_spec):
        cut = [_split(value, spec, num_chunks) for value, spec in pairs]
        for place, chunk in enumerate(result):
            chunk[name] = tree_unflatten([parts[place] for parts in cut], structure)
    return result


def _split_tensor(tensor: flambeau.Tensor, spec: TensorChunkSpec,
                  num_chunks: int) -> Sequence[flambeau.Tensor]:
    size = tensor.size(spec.split_dim)
    if size < num_chunks:
        raise AssertionError(f"Tensor size {size} is smaller than num_chunks")
    parts = flambeau.tensor_split(tensor, num_chunks, spec.split_dim)
    if not _debug_mask_minibatches:
        return parts
    masked, start = [], 0
    for part in parts:
        whole = flambeau.zeros_like(tensor)
        length = part.size(spec.split_dim)
        whole.narrow(spec.split_dim, start, length).copy_(part)
        masked.append(whole)
        start += length
    return masked


def _split_block_mask(block_mask: BlockMask, num_chunks: int) -> list[BlockMask]:
    """Masks of parts of the batch; their `mask_mod` gets the indices of the whole batch."""
    batch = block_mask.kv_num_blocks.size(0)
    if batch == 1:
        return [block_mask] * num_chunks
    if batch < num_chunks:
        raise AssertionError("Block mask has fewer batch size than the number of chunks. ")
    names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
    blocks = {name: _tensor_split(getattr(block_mask, name), num_chunks) for name in names}
    masks, start = [], 0
    for place in range(num_chunks):
        parts: dict[str, Any] = {name: blocks[name][place] for name in names}
        masks.append(BlockMask.from_kv_blocks(
            **parts, BLOCK_SIZE=block_mask.BLOCK_SIZE, seq_lengths=block_mask.seq_lengths,
            mask_mod=_from_batch(block_mask.mask_mod, start)))
        start += parts["kv_num_blocks"].size(0)
    return masks


def _tensor_split(tensor: flambeau.Tensor | None, count: int) -> Sequence[flambeau.Tensor | None]:
    return [None] * count if tensor is None else flambeau.tensor_split(tensor, count)


def _from_batch(mask_mod: Callable, start: int) -> Callable:
    def batch_offset_mask_mod(b, h, q_idx, kv_idx):
        return mask_mod(b + start, h, q_idx, kv_idx)
    return batch_offset_mask_mod


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """One value of the values of all microbatches: tensors are joined along the dimension of their
    spec, which without specs is the first.

    >>> from flambeau.distributed.pipelining.microbatch import merge_chunks
    >>> merge_chunks([torch.arange(2), torch.arange(3)], None)
    tensor([0, 1, 0, 1, 2])
    """
    first, structure = tree_flatten(chunks[0])
    specs = ([TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(first) if chunk_spec is None
             else tree_flatten(chunk_spec, is_leaf=lambda spec: spec is None)[0])
    columns = []
    for chunk in chunks:
        leaves, _ = tree_flatten(chunk)
        if len(leaves) != len(specs):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
        columns.append(leaves)
    merged = [_merge(list(values), spec) for values, spec in zip(zip(*columns), specs)]
    return tree_unflatten(merged, structure)


def _merge(values: list[Any], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return _join(values, spec.split_dim)
    if isinstance(spec, _CustomReducer):
        result = spec.init_value
        for value in values:
            result = spec.reduce_fn(result, value)
        return result
    for value in values[1:]:
        if value != values[0]:
            raise AssertionError(f"Expected {values[0]}, got {value}")
    return values[0]


def _join(values: list[Any], dim: int) -> flambeau.Tensor:
    if _debug_mask_minibatches and isinstance(values[0], flambeau.Tensor):
        # of each microbatch the rows that are its own
        if any(value.shape != values[0].shape for value in values):
            raise AssertionError("Masked microbatches have the shape of the whole batch")
        sizes = [part.size(dim) for part in flambeau.empty(
            values[0].shape, device="meta").tensor_split(len(values), dim)]
        starts = [sum(sizes[:place]) for place in range(len(sizes))]
        values = [value.narrow(dim, start, size)
                  for value, start, size in zip(values, starts, sizes)]
    return flambeau.cat(values, dim=dim)
