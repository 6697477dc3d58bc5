"""Ring attention: each process has a part of the queries, and sees all keys and values in turn.

The results for the parts of the keys are merged by the logarithms of their sums of exponentials:
they are exactly those for all keys. Where a causal sequence is balanced (each process has a chunk
from the front, and one from the end), the keys that arrive before a process's own are seen with
their first half by all queries, the keys of later processes by the second half of the queries.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import flambeau
from flambeau import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed.tensor.experimental._context_parallel import _options
from flambeau.distributed.tensor.experimental._context_parallel._options import (
    _CausalBehavior,
    _is_causal_behavior,
    _RotateMethod,
)


class _AttentionOp(Protocol):
    """Attention that gives the logarithms of the sums of exponentials, too."""

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, **kwargs: object
                 ) -> tuple[Tensor, ...]: ...


# ---- passing parts on ---------------------------------------------------------------------------

class _RingRotater(ABC):
    """Brings the next process's buffer at each step."""

    @abstractmethod
    def __init__(self, pg: Any, seq_dim: int) -> None: ...

    @abstractmethod
    def exchange_buffers(self, curr_buffer: Tensor) -> None:
        """Give a buffer away."""

    @abstractmethod
    def next_buffer(self) -> Tensor:
        """The buffer that has come."""


class _AllToAllRotater(_RingRotater):
    """From each process to the next."""

    def __init__(self, pg: Any, seq_dim: int):
        self._pg, self._seq_dim = pg, seq_dim
        self._buffer: Tensor | None = None

    def exchange_buffers(self, curr_buffer: Tensor) -> None:
        """Give a buffer to the next process."""
        count = self._pg.size()
        self._buffer = funcol.permute_tensor(curr_buffer.contiguous(),
                                             [(i + 1) % count for i in range(count)], self._pg)

    def next_buffer(self) -> Tensor:
        """That of the process before."""
        assert self._buffer is not None
        return _maybe_wait(self._buffer)


class _AllGatherRotater(_RingRotater):
    """All at once, at the first step."""

    def __init__(self, pg: Any, seq_dim: int):
        self._pg, self._seq_dim = pg, seq_dim
        self._idx = 0
        self._aggregated_buffer: Tensor | None = None

    def exchange_buffers(self, curr_buffer: Tensor) -> None:
        """Give the first buffer to all."""
        self._idx += 1
        if self._aggregated_buffer is None:
            self._aggregated_buffer = funcol.all_gather_tensor(curr_buffer.contiguous(), 0,
                                                               self._pg)

    def next_buffer(self) -> Tensor:
        """That of the process so many steps before."""
        assert self._aggregated_buffer is not None
        parts = _maybe_wait(self._aggregated_buffer).chunk(self._pg.size())
        return parts[self._pg.rank() - self._idx]


def _create_rotater(pg: Any, seq_dim: int, method: _RotateMethod | None = None) -> _RingRotater:
    """The one that has been asked for."""
    method = method or _options._cp_options.rotate_method
    if method is _RotateMethod.ALL_TO_ALL:
        return _AllToAllRotater(pg, seq_dim)
    if method is _RotateMethod.ALL_GATHER:
        return _AllGatherRotater(pg, seq_dim)
    raise NotImplementedError(f"Unknown method {method}")


def _maybe_wait(tensor: Tensor) -> Tensor:
    return tensor.wait() if isinstance(tensor, funcol.AsyncCollectiveTensor) else tensor


# ---- merging ------------------------------------------------------------------------------------

def _partial_update(original: Tensor, new: Tensor, dim: int, n_chunks: int, idx: int, add: bool
                    ) -> Tensor:
    """One of equal chunks of a tensor replaced, or added to."""
    chunks = list(original.chunk(n_chunks, dim))
    chunks[idx] = chunks[idx] + new if add else new
    return flambeau.cat(chunks, dim)


class _SDPAMerger:
    """Adds up results for parts of the keys, by their weights."""

    def __init__(self, convert_to_f32: bool, seq_dim: int):
        self._seq_dim, self._convert_to_f32 = seq_dim, convert_to_f32
        self._out: Tensor | None = None
        self._lse: Tensor | None = None
        self._out_dtype = self._lse_dtype = flambeau.float32

    def _merge_one(self, block_out: Tensor, block_lse: Tensor, partial: bool) -> None:
        if self._out is None or self._lse is None:
            self._out, self._lse = block_out, block_lse
            return
        count = 2 if partial else 1
        out = self._out.chunk(count, self._seq_dim)[-1]
        lse = self._lse.chunk(count, 2)[-1]
        difference = (block_lse - lse).unsqueeze(-1)
        out = out - flambeau.sigmoid(difference) * (out - block_out)
        lse = flambeau.logaddexp(lse, block_lse)
        self._out = _partial_update(self._out, out, self._seq_dim, count, count - 1, False)
        self._lse = _partial_update(self._lse, lse, 2, count, count - 1, False)

    def step(self, out: Tensor, lse: Tensor, partial: bool) -> None:
        """Add a result; with `partial` it is one of the second half of the queries."""
        self._out_dtype, self._lse_dtype = out.dtype, lse.dtype
        if self._convert_to_f32:
            out, lse = (x if x.dtype is flambeau.float64 else x.to(flambeau.float32)
                        for x in (out, lse))
        self._merge_one(out, lse, partial)

    def results(self) -> tuple[Tensor, Tensor]:
        """The result for all keys."""
        assert self._out is not None and self._lse is not None
        return self._out.to(self._out_dtype), self._lse.to(self._lse_dtype)


# ---- forward and backward -----------------------------------------------------------------------

def _packed(*tensors: Tensor) -> Tensor:
    return flambeau.cat([t.reshape(-1) for t in tensors])


def _unpacked(flat: Tensor, *like: Tensor) -> list[Tensor]:
    return [part.reshape(t.shape)
            for part, t in zip(flat.split([t.numel() for t in like]), like)]


def _halves(is_causal: bool) -> bool:
    """Has each process a chunk from the front, and one from the end?"""
    return is_causal and _options._cp_options.enable_load_balance


def _check(group: Any, seq_dim: int, query: Tensor, key: Tensor, is_causal: bool) -> None:
    if is_causal and query.size(seq_dim) != key.size(seq_dim):
        raise NotImplementedError("is_causal requires the same query and context sequence lengths")
    if _halves(is_causal) and group.size() > 1 and query.size(seq_dim) % 2:
        raise ValueError(f"a part of {query.size(seq_dim)} places has no halves: balanced causal "
                         "attention needs sequences whose length is a multiple of twice the "
                         f"number of processes ({2 * group.size()})")


def _templated_ring_attention(group: Any, seq_dim: int, op: _AttentionOp, query: Tensor,
                              key: Tensor, value: Tensor, is_causal: bool = False, **kwargs: object
                              ) -> tuple[Tensor, ...]:
    """Attention of this process's queries to all processes' keys, by an `op` that gives results
    and logarithms."""
    _check(group, seq_dim, query, key, is_causal)
    rank, size, rest = group.rank(), group.size(), []
    merger = _SDPAMerger(_options._cp_options.convert_to_f32, seq_dim)
    rotater = _create_rotater(group, 0)
    shared = _packed(key, value)
    for i in range(size):
        if i:
            shared = rotater.next_buffer()
            key, value = _unpacked(shared, key, value)
        if i < size - 1:
            rotater.exchange_buffers(shared)
        behavior = _is_causal_behavior(rank, size, i, is_causal)
        if behavior is _CausalBehavior.SKIP:
            continue
        q, k, v, partial = query, key, value, False
        if i and _halves(is_causal):
            if i <= rank:
                k, v = k.chunk(2, seq_dim)[0], v.chunk(2, seq_dim)[0]
            else:
                q, partial = q.chunk(2, seq_dim)[1], True
        out, lse, *rest = op(q, k, v, is_causal=bool(behavior.value), **kwargs)
        merger.step(out, lse, partial)
    return (*merger.results(), *rest)


def _templated_ring_attention_backward(
        group: Any, seq_dim: int, op: Any, grad_out: Tensor, grad_out_name: str, query: Tensor,
        key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, is_causal: bool, **kwargs: Any
        ) -> tuple[Tensor, ...]:
    """The gradients: those of keys and values travel with them, and come home."""
    _check(group, seq_dim, query, key, is_causal)
    rank, size, rest = group.rank(), group.size(), []
    wide = query.dtype if query.dtype is flambeau.float64 else flambeau.float32
    sums = [flambeau.zeros(t.shape, dtype=wide) for t in (query, key, value)]
    rotater = _create_rotater(group, 0)
    back = _create_rotater(group, 0, _RotateMethod.ALL_TO_ALL)
    shared = _packed(key, value)
    for i in range(size):
        if i:
            shared = rotater.next_buffer()
            key, value = _unpacked(shared, key, value)
            back.exchange_buffers(_packed(*sums[1:]))
            sums[1:] = _unpacked(back.next_buffer(), key, value)
        if i < size - 1:
            rotater.exchange_buffers(shared)
        behavior = _is_causal_behavior(rank, size, i, is_causal)
        if behavior is _CausalBehavior.SKIP:
            continue
        given, parts = [query, key, value, grad_out, out, logsumexp], [(1, 0), (1, 0)]
        if i and _halves(is_causal):
            halved = (1, 2) if i <= rank else (0, 3, 4, 5)
            which = 0 if i <= rank else 1
            parts = [(1, 0), (2, 0)] if i <= rank else [(2, 1), (1, 0)]
            given = [t.chunk(2, 2 if at == 5 else seq_dim)[which] if at in halved else t
                     for at, t in enumerate(given)]
        q, k, v, grad, result, lse = given
        *grads, = op(**{grad_out_name: grad}, query=q, key=k, value=v, out=result, logsumexp=lse,
                     is_causal=bool(behavior.value), **kwargs)
        rest = grads[3:]
        for at, found in enumerate(grads[:3]):
            count, which = parts[bool(at)]
            sums[at] = _partial_update(sums[at], found.to(wide), seq_dim, count, which, True)
    if size > 1:
        back.exchange_buffers(_packed(*sums[1:]))
        sums[1:] = _unpacked(back.next_buffer(), key, value)
    return (*[s.to(t.dtype) for s, t in zip(sums, (query, key, value))], *rest)


__all__ = ["_AllGatherRotater", "_AllToAllRotater", "_AttentionOp", "_RingRotater",
           "_SDPAMerger", "_create_rotater", "_templated_ring_attention",
           "_templated_ring_attention_backward"]
