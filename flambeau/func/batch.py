"""`vmap`: a function of one example becomes one of many."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau._support.scopes import inside
from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor
from flambeau.ops.view.join import cat
from flambeau.ops.view.shape import expand_to, movedim
from flambeau.random import get_rng_state, set_rng_state
from flambeau.transforms.batching import BatchLevel
from flambeau.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
         *, chunk_size: int | None = None) -> Callable[..., Any]:
    """`func` for all slices of its arguments at once.

    in_dims     the dimension along which each argument is sliced (None: the same for all); an int,
                or a structure like the arguments
    out_dims    where the slices are put in each result
    randomness  "error", "same" or "different": what random ops do
    chunk_size  at most so many slices at a time

    >>> import flambeau
    >>> dots = vmap(flambeau.dot)
    >>> dots(flambeau.ones(3, 2), flambeau.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        if chunk_size is not None and chunk_size < size:
            return _in_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs,
                              chunk_size)
        return run_batched(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
    return batched


def _get_name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


def _process_batched_inputs(in_dims: Any, args: Any, func: Any) -> Any:
    """Check the arguments; gives the number of slices, a dimension for each leaf, the leaves."""
    call = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{call}: expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to "
                         "add inputs, or you are trying to vmap over a function with no inputs. "
                         "The latter is unsupported.")
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(f"{call}: in_dims is not compatible with the structure of `inputs`. "
                         f"in_dims has structure {tree_flatten(in_dims)[1]} but inputs has "
                         f"structure {spec}.")
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but in_dim must be either an "
                             "integer dimension or None.")
        if isinstance(dim, int) and not isinstance(leaf, Tensor):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but the input is of type "
                             f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use "
                             "None as the respective in_dim")
        if dim is not None and not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(f"{call}: Got in_dim={dim} for some input, but that input is a Tensor "
                             f"of dimensionality {leaf.dim()} so expected in_dim to satisfy -"
                             f"{leaf.dim()} <= in_dim < {leaf.dim()}.")
        if dim is not None and dim < 0:
            dims[i] = dim + leaf.dim()
    sizes = [leaf.size(d) for leaf, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                         f"dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0], dims, leaves, spec


def run_batched(func: Any, size: int, dims: Any, leaves: Any, spec: Any, out_dims: Any,
                randomness: str, kwargs: Any) -> Any:
    """`func` of batched arguments, and its results whole again. The functions that it calls stand
    under PyTorch's names, where libraries put their own containers into them."""
    if any(d is not None and leaf.is_nested for leaf, d in zip(leaves, dims)):
        from flambeau.nested.tensors import map_parts
        return map_parts(lambda slices: func(*tree_unflatten(slices, spec), **kwargs), size, dims,
                         leaves)
    level = BatchLevel(size, randomness)

    def run() -> Any:
        return func(*_create_batched_inputs(dims, leaves, level, spec), **kwargs)
    return _unwrap_batched(inside(level, run), out_dims, level, size, func)


def _create_batched_inputs(flat_in_dims: Any, flat_args: Any, vmap_level: Any, args_spec: Any
                           ) -> Any:
    """The arguments of one slice."""
    return tree_unflatten([leaf if d is None else _add_batch_dim(leaf, d, vmap_level)
                           for leaf, d in zip(flat_args, flat_in_dims)], args_spec)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: Any, batch_size: int,
                    func: Any) -> Any:
    """The results of all slices."""
    leaves, spec = tree_flatten(batched_outputs)
    dims = [out_dims] * len(leaves) if isinstance(out_dims, int) else \
        _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and len(leaves) == 1:
        dims = list(out_dims)
    if dims is None:
        raise ValueError(f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims "
                         "is not compatible with the structure of `outputs`. out_dims has "
                         f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.")
    name = _get_name(func)
    return tree_unflatten([_maybe_remove_batch_dim(name, leaf, vmap_level, batch_size, d)
                           for leaf, d in zip(leaves, dims)], spec)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: Any, batch_size: int,
                            out_dim: int | None) -> Any:
    """A result of all slices, with these along `out_dim`."""
    if not isinstance(batched_output, Tensor):
        if out_dim is None:
            return batched_output
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                         f"{type(batched_output)}. Did you mean to set out_dims= to None for "
                         "output?")
    level = level_of(vmap_level)
    value, bdim = level.unwrap(batched_output)
    if out_dim is None:
        if bdim is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                             "out_dim is None")
        return value
    return _remove_batch_dim(batched_output, level, batch_size, out_dim)


def level_of(vmap_level: BatchLevel | int) -> BatchLevel:
    """The level of a number, among those that are entered."""
    if isinstance(vmap_level, BatchLevel):
        return vmap_level
    for level in levels.get():
        if isinstance(level, BatchLevel) and level.number == vmap_level:
            return level
    raise RuntimeError(f"vmap: there is no level {vmap_level} here")


def _add_batch_dim(self: Tensor, batch_dim: int, level: BatchLevel | int) -> Tensor:
    """One slice, whatever the slice, of a tensor."""
    return level_of(level).wrap(self, batch_dim)


def _remove_batch_dim(self: Tensor, level: BatchLevel | int, batch_size: int, out_dim: int
                      ) -> Tensor:
    """The tensor whose slices along `out_dim` these are."""
    value, bdim = level_of(level).unwrap(self)
    if bdim is None:
        return movedim(expand_to(value, (batch_size, *value.shape)), 0, out_dim)
    return value if bdim == out_dim else movedim(value, bdim, out_dim)


def _in_chunks(func: Any, size: int, dims: Any, leaves: Any, spec: Any, out_dims: Any,
               randomness: str, kwargs: Any, chunk_size: int) -> Any:
    parts, state = [], get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if state is not None:
            set_rng_state(state)
        n = min(chunk_size, size - start)
        cut = [leaf if d is None else leaf.narrow(d, start, n) for leaf, d in zip(leaves, dims)]
        parts.append(run_batched(func, n, dims, cut, spec, out_dims, randomness, kwargs))
    flat = [tree_flatten(p) for p in parts]
    spec_out = flat[0][1]
    joined = [out_dims] * len(flat[0][0]) if isinstance(out_dims, int) else \
        _broadcast_to_and_flatten(out_dims, spec_out)
    return tree_unflatten([cat(list(column), d) if d is not None else column[0]
                           for column, d in zip(zip(*[f[0] for f in flat]), joined)], spec_out)
