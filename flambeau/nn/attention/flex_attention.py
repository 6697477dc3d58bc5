"""Attention whose scores a function of the user's changes, and masks made of functions.

out = softmax(score_mod(q kᵀ · scale)) v, where `score_mod(score, batch, head, q_index, kv_index)`
is a function of one score, applied to all by `vmap`, and `mask_mod(batch, head, q_index, kv_index)`
says which pairs attend at all. (Dong et al., "Flex Attention: a programming model for generating
optimized attention kernels", 2024.) All scores are computed; blocks that a mask leaves out are not
skipped.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import flambeau
from flambeau._higher_order_ops.flex_attention import attend, over_all_pairs
from flambeau._support.settings import warn_once
from flambeau.core.tensor import Tensor

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks",
           "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
FlexKernelOptions = dict        # what tunes kernels: accepted, without effect
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What else `flex_attention` shall give: logarithms of the sums, largest scores."""
    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `AuxRequest` asked for; the rest is None."""
    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ---- masks as functions -------------------------------------------------------------------------


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask in which all pairs attend."""
    return batch.new_ones((), dtype=flambeau.bool)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of the pairs that all of `mask_mods` let attend."""
    _check_callable(mask_mods, "and_masks")

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_ones((), dtype=flambeau.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q, kv)
        return result
    return mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask of the pairs that any of `mask_mods` lets attend."""
    _check_callable(mask_mods, "or_masks")

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=flambeau.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q, kv)
        return result
    return mask


_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class _MaskModWrapper:
    """A `mask_mod` as an object, which calls it."""

    def __init__(self, fn: Any, callable_spec: Any = None):
        self.fn, self.callable_spec = fn, callable_spec

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)


def _check_callable(mask_mods: Any, name: str) -> None:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = None) -> Tensor:
    """The values of a mask function, (B, H, Q_LEN, KV_LEN); B or H None stands for 1.

    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    index = [flambeau.arange(n, device=device) for n in (B or 1, H or 1, Q_LEN, KV_LEN)]
    if len(signature(mod_fn).parameters) == 5:          # a score_mod: what it does not set to -inf
        scores = flambeau.zeros([len(i) for i in index], device=device)
        return over_all_pairs(mod_fn, (0,))(scores, *index) != -math.inf
    return over_all_pairs(mod_fn)(*index)


# ---- masks by blocks ----------------------------------------------------------------------------


class BlockMask:
    """Which blocks of queries and keys attend: in part (`kv_num_blocks`, `kv_indices`) or wholly
    (`full_…`); the indices of each row of blocks come first those that do. `q_…` say it by columns.

    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 300, 300)
    >>> causal.shape, causal.to_dense()[0, 0].tolist()
    ((1, 1, 300, 300), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    """

    _PARTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
              "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
                 full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None,
                 q_num_blocks: Tensor | None, q_indices: Tensor | None,
                 full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
                 BLOCK_SIZE: tuple[int, int] = (128, 128), mask_mod: MaskMod = noop_mask, *,
                 dq_write_order: Tensor | None = None, dq_write_order_full: Tensor | None = None,
                 dq_kv_order: Tensor | None = None, dq_kv_order_spt: bool | None = None):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        # the order in which a GPU's blocks write gradients: it changes nothing here
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor,
                       full_kv_num_blocks: Tensor | None = None,
                       full_kv_indices: Tensor | None = None,
                       BLOCK_SIZE: int | tuple[int, int] = 128, mask_mod: MaskMod | None = None,
                       seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True,
                       *, dq_write_order: Tensor | None = None,
                       dq_write_order_full: Tensor | None = None,
                       dq_kv_order: Tensor | bool | None = None) -> BlockMask:
        """The mask of these rows of blocks; the columns follow, unless `compute_q_blocks=False`."""
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or "
                                 "omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        by_columns: list[Any] = []
        for number, indices in ((kv_num_blocks, kv_indices),
                                (full_kv_num_blocks, full_kv_indices)):
            by_columns += (None, None) if number is None or not compute_q_blocks else _ordered(
                _dense(number, indices).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
                   **dict(zip(cls._PARTS[4:], by_columns)), BLOCK_SIZE=size,
                   mask_mod=mask_mod or noop_mask, dq_write_order=dq_write_order,
                   dq_write_order_full=dq_write_order_full,
                   dq_kv_order=None if isinstance(dq_kv_order, bool) else dq_kv_order,
                   dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """What the mask is made of."""
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (*lengths, *(getattr(self, part) for part in self._PARTS), *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, and the lengths of queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs, masked or not."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """1 for each block that attends, wholly or in part."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def sparsity(self) -> float:
        """The percentage of the pairs that lie in blocks which don't attend."""
        attending = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            attending += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - attending * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        parts = self._each_part(self._PARTS, lambda tensor: tensor.to(device))
        return BlockMask(self.seq_lengths, **parts, BLOCK_SIZE=self.BLOCK_SIZE,
                         mask_mod=self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        parts = self._each_part(self._PARTS[:4], lambda tensor: tensor[index])
        return BlockMask.from_kv_blocks(**parts, BLOCK_SIZE=self.BLOCK_SIZE,
                                        seq_lengths=self.seq_lengths)

    def _each_part(self, names: tuple[str, ...], change: Callable[[Tensor], Tensor]
                   ) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in names}
        return {name: None if part is None else change(part) for name, part in parts.items()}

    def __repr__(self) -> str:
        lines = [f"{part}={value.shape}" for part in self._PARTS
                 if (value := getattr(self, part)) is not None]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}",
                  f"sparsity={self.sparsity():.2f}%",
                  f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"

    def __str__(self) -> str:
        return (f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
                f"{self.to_string().strip()}\n)")

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of each of the first `limit` masks, of at most `grid_size` characters' pairs:
        full where all blocks attend, blank where none does. With -1 each block has its own."""
        dense = self.to_dense()
        high, wide = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = (max(1, -(-size // most))
                        for size, most in zip(dense.shape[-2:], (high, wide)))
        pictures: list[str] = []
        for place in itertools.product(*map(range, dense.shape[:-2])):
            if len(pictures) == limit:
                pictures += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                             "You can also index (BlockMask[batch, head]) to choose a specific "
                             "batch or head"]
                break
            rows = ["".join(_shade(part) * 2 for part in rows.split(across, 1))
                    for rows in dense[place].split(down)]
            pictures.append("\n".join([str(place), *rows, ""]))
        return "\n".join(pictures)


def _shade(blocks: Tensor) -> str:
    attending = blocks.float().mean().item()
    return "█" if attending == 1 else " " if attending == 0 else "░"


def _dense(number: Tensor, indices: Tensor) -> Tensor:
    """Blocks given by counts and indices as a matrix of 0 and 1."""
    first = flambeau.arange(indices.shape[-1]) < number.unsqueeze(-1)
    return flambeau.zeros_like(indices).scatter(-1, indices.long(), first.to(indices.dtype))


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row attend, and the indices with those first."""
    order = blocks.argsort(dim=-1, descending=True, stable=True)
    return (blocks.sum(-1).to(flambeau.int32),
            order.to(flambeau.int32).contiguous())


def create_block_mask(mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128,
                      _compile: bool = False, separate_full_blocks: bool = True,
                      compute_dq_write_order: bool = False,
                      dq_kv_order: bool = True) -> BlockMask:
    """The `BlockMask` of a mask function; B or H None stands for 1, for all batches or heads."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    filled = flambeau.nn.functional.pad(mask, [0, -KV_LEN % size[1], 0, -Q_LEN % size[0]])
    rows, columns = filled.shape[-2] // size[0], filled.shape[-1] // size[1]
    counts = filled.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    full = counts == size[0] * size[1]
    partial = (counts > 0) & ~full if separate_full_blocks else counts > 0
    full_parts = _ordered(full.to(flambeau.int32)) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(*_ordered(partial.to(flambeau.int32)), *full_parts,
                                    BLOCK_SIZE=size, mask_mod=mask_mod,
                                    seq_lengths=(Q_LEN, KV_LEN))


# ---- attention ----------------------------------------------------------------------------------


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Any = None,
                   block_mask: BlockMask | None = None, scale: float | None = None,
                   enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: dict[str, Any] | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """Attention of `query` (B, Hq, L, E) to `key` (B, Hkv, S, E) and `value` (B, Hkv, S, Ev), with
    the scores changed by `score_mod` and masked by `block_mask`: (B, Hq, L, Ev).

    scale       of the scores; 1/√E where it is None
    enable_gqa  Hq may be a multiple of Hkv: each head of the keys serves several
    return_lse  also the logarithm of the sum of the exponentials, (B, Hq, L)

    A query that attends to nothing gives 0. ValueError for shapes that don't fit.

    >>> q = k = v = flambeau.eye(3)[None, None]
    >>> causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 3, 3)
    >>> flex_attention(q, k, v, block_mask=causal)[0, 0, 0]
    tensor([1., 0., 0.])
    """
    _check_shapes(query, key, value, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, "
                         "please use return_aux=AuxRequest(lse=True) instead.")
    if return_lse:
        warn_once("return_lse is deprecated and will be removed in v2.10. Please use "
                  "return_aux=AuxRequest(lse=True) instead.", FutureWarning)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    out, lse, scores = attend(query, key, value, score_mod,
                              None if block_mask is None else block_mask.mask_mod, scale)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None,
                              scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError("Expected query, key, and value to have the same dtype, but got "
                         f"query.dtype: {query.dtype}, key.dtype: {key.dtype}, and value.dtype: "
                         f"{value.dtype} instead.")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.shape[-1]} and E={key.shape[-1]}.")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError("Expect query and key/value to have the same number of heads but got "
                         f"Hq={query.shape[1]} and Hkv={key.shape[1]}. Try setting "
                         "enable_gqa=True for GQA.")
    if query.shape[1] % key.shape[1]:
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA but "
                         f"got Hq={query.shape[1]} and Hkv={key.shape[1]}.")
