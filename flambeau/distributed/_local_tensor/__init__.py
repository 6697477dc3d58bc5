"""The program of many ranks in one process, for tests and debugging without processes.

Inside a `LocalTensorMode` each tensor that is made is a `LocalTensor`: it has the tensors of all
ranks, ops compute for each of them, and collectives exchange what they hold.

>>> from flambeau.distributed._local_tensor import LocalTensorMode, rank_map
>>> with LocalTensorMode(2):
...     rank_map(lambda rank: torch.ones(2) * rank) + torch.ones(2)
LocalTensor(
  0: tensor([1., 1.]),
  1: tensor([2., 2.])
)
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau import distributed as dist
from flambeau.distributed._local_tensor import _c10d
from flambeau.utils import _pytree
from flambeau.utils._python_dispatch import TorchDispatchMode

_LOCAL_TENSOR_ATTR_PREFIX = "_local_tensor_"
_PROCESS_LOCAL_TENSOR_MODE: list[LocalTensorMode] = []


class LocalTensor(Tensor):
    """The tensors of several ranks, which have one shape."""

    _local_tensors: dict[int, Tensor]
    _ranks: frozenset[int]
    __torch_function__ = flambeau._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_tensors: Mapping[int, Tensor],
                requires_grad: bool = False) -> LocalTensor:
        if not local_tensors:
            raise ValueError("LocalTensor cannot be empty!")
        if any(t.requires_grad for t in local_tensors.values()):
            raise AssertionError("Internal local_tensors require grad, but we will ignore those "
                                 "autograd graph. Make a custom autograd function and make sure "
                                 "you detach the inner tensors.")
        first = next(iter(local_tensors.values()))
        for name in ("dtype", "device", "layout"):
            if any(getattr(t, name) != getattr(first, name) for t in local_tensors.values()):
                raise AssertionError("Tensors representing LocalTensor shards must have the same "
                                     f"{name}")
        if any(t.shape != first.shape for t in local_tensors.values()):
            shapes = {rank: tuple(t.shape) for rank, t in local_tensors.items()}
            raise NotImplementedError("a LocalTensor whose ranks have tensors of different shapes: "
                                      f"{shapes}")
        self = Tensor._make_wrapper_subclass(
            cls, first.shape, strides=first.stride(), dtype=first.dtype, device=first.device,
            layout=first.layout, requires_grad=requires_grad)
        self._local_tensors = dict(sorted(local_tensors.items()))
        self._ranks = frozenset(local_tensors)
        return self

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __deepcopy__(self, memo: dict[int, Any] | None) -> LocalTensor:
        copies = {rank: t.detach().clone() for rank, t in self._local_tensors.items()}
        return LocalTensor(copies, self.requires_grad)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = ",\n".join(f"  {rank}: {t}" for rank, t in self._local_tensors.items())
        return f"LocalTensor(\n{parts}\n)"

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(_LOCAL_TENSOR_ATTR_PREFIX):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        rank = int(name.removeprefix(_LOCAL_TENSOR_ATTR_PREFIX))
        if rank not in self._ranks:
            raise AttributeError(f"Local tensor has no knowledge of rank {rank}")
        return self._local_tensors[rank]

    def __tensor_flatten__(self) -> tuple[list[str], tuple[Any, ...]]:
        names = [f"{_LOCAL_TENSOR_ATTR_PREFIX}{rank}" for rank in sorted(self._ranks)]
        return names, (self.requires_grad,)

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Any], flatten_spec: tuple[Any, ...],
                             outer_size: Any, outer_stride: Any) -> LocalTensor:
        return LocalTensor({int(name.removeprefix(_LOCAL_TENSOR_ATTR_PREFIX)): t
                            for name, t in inner_tensors.items()}, flatten_spec[0])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [leaf for leaf in _pytree.tree_leaves((args, kwargs))
                 if isinstance(leaf, LocalTensor)]
        with LocalTensorMode(frozenset().union(*(t._ranks for t in found))):
            return func(*args, **kwargs or {})

    def reconcile(self) -> Tensor:
        """The tensor that all ranks have; they have to agree."""
        first, *others = self._local_tensors.values()
        with maybe_disable_local_tensor_mode():
            if not all(flambeau.equal(first, t) for t in others):
                raise AssertionError("LocalTensor shards must be the same to reconcile")
            found = first.detach().clone()
        return found.requires_grad_(self.requires_grad)

    def _reconciled(self) -> Tensor:
        return self.reconcile().detach()

    def numpy(self, *, force: bool = False) -> Any:
        with maybe_disable_local_tensor_mode():
            return self._reconciled().numpy(force=force)

    def tolist(self) -> Any:
        try:
            found = self._reconciled()
        except AssertionError:
            raise RuntimeError("Cannot convert local tensor to list") from None
        with maybe_disable_local_tensor_mode():
            return found.tolist()

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to "
                               "Scalar")
        with maybe_disable_local_tensor_mode():
            return self._reconciled().item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    __index__ = __int__

    def is_contiguous(self, memory_format: Any = flambeau.contiguous_format) -> bool:
        return all(t.is_contiguous(memory_format=memory_format)
                   for t in self._local_tensors.values())


class LocalTensorMode(TorchDispatchMode):
    """Inside, tensors have values for each of some ranks: `ranks`, or as many as that."""

    def __init__(self, ranks: int | frozenset[int]):
        if isinstance(ranks, int):
            ranks = frozenset(range(ranks))
        if not isinstance(ranks, frozenset):
            raise AssertionError(f"expected a number of ranks or a frozenset of them, got "
                                 f"{type(ranks)}")
        self.ranks = ranks
        self._disable = False
        super().__init__()

    def __enter__(self) -> LocalTensorMode:
        _PROCESS_LOCAL_TENSOR_MODE.append(self)
        super().__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _PROCESS_LOCAL_TENSOR_MODE.pop()
        super().__exit__(exc_type, exc_val, exc_tb)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = _pytree.tree_leaves((args, kwargs))
        local = [leaf for leaf in leaves if isinstance(leaf, LocalTensor)]
        if self._disable or (not local and any(isinstance(leaf, Tensor) for leaf in leaves)):
            with self.disable():
                return func(*args, **kwargs)
        for tensor in local:
            if not tensor._ranks <= self.ranks:
                raise AssertionError(f"Input LocalTensor {tensor} and LocalTensorMode must be "
                                     f"configured for the same ranks {sorted(self.ranks)}")
        with self.disable():
            if func.namespace in ("c10d", "_c10d_functional"):
                exchange = _c10d.collective(func)
                if exchange is None:
                    raise NotImplementedError(f"{func} in a LocalTensorMode")
                return exchange(self.ranks, *args, **kwargs)
            ranks = frozenset.intersection(*(t._ranks for t in local)) if local else self.ranks
            return _for_each_rank_run_func(func, ranks, args, kwargs)

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        """Inside, tensors are those of this process alone."""
        before, self._disable = self._disable, True
        try:
            yield
        finally:
            self._disable = before

    def disable_(self) -> None:
        """Tensors are those of this process alone from now on."""
        self._disable = True

    def enable_(self) -> None:
        """The reverse of `disable_`."""
        self._disable = False

    def rank_map(self, cb: Callable[[int], Tensor]) -> LocalTensor:
        """What a function gives for each rank."""
        with self.disable():
            return LocalTensor({rank: cb(rank) for rank in sorted(self.ranks)})

    def tensor_map(self, tensor: LocalTensor, cb: Callable[[int, Tensor], Tensor | None]
                   ) -> LocalTensor:
        """What a function gives for each rank and its tensor; ranks of None are left out."""
        with self.disable():
            found = {rank: cb(rank, t) for rank, t in tensor._local_tensors.items()}
            return LocalTensor({rank: t for rank, t in found.items() if t is not None})


# ---- ops for each rank --------------------------------------------------------------------------

def _map_to_rank_local_val(val: Any, rank: int) -> Any:
    return val._local_tensors[rank] if isinstance(val, LocalTensor) else val


def _for_each_rank_run_func(func: Callable[..., Any], ranks: frozenset[int], args: Any,
                            kwargs: dict[str, Any], *, alias: bool = True) -> Any:
    """Run a function for each rank, all from the same state of the random numbers."""
    state = flambeau.get_rng_state()
    results: dict[int, Any] = {}
    for rank in sorted(ranks):
        flambeau.set_rng_state(state)
        mine, named = _pytree.tree_map(
            lambda leaf, rank=rank: _map_to_rank_local_val(leaf, rank), (list(args), kwargs))
        results[rank] = func(*mine, **named)
    if alias and _is_inplace_op(func):
        return args[0]
    return _combine_rank_results(results, None)


def _is_inplace_op(op: Any) -> bool:
    schema = getattr(op, "_schema", None)
    return schema is not None and bool(schema.arguments) and schema.arguments[0].is_write


def _combine_rank_results(rank_results: dict[int, Any], default: Any) -> Any:
    """One result of those of all ranks, of the same structure."""
    first = next(iter(rank_results.values()))
    if isinstance(first, Tensor):
        return LocalTensor(rank_results)
    if isinstance(first, (list, tuple)) and not isinstance(first, flambeau.Size):
        parts = [_combine_rank_results(dict(zip(rank_results, column)), default)
                 for column in zip(*rank_results.values())]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if any(value != first for value in rank_results.values()):
        raise AssertionError(f"the ranks have different results: {rank_results}")
    return first


# ---- the mode that is at work -------------------------------------------------------------------

def get_local_tensor_mode_list() -> list[LocalTensorMode]:
    """The modes that are entered, the innermost last."""
    return _PROCESS_LOCAL_TENSOR_MODE


def local_tensor_mode() -> LocalTensorMode | None:
    """The innermost mode."""
    return _PROCESS_LOCAL_TENSOR_MODE[-1] if _PROCESS_LOCAL_TENSOR_MODE else None


def enabled_local_tensor_mode() -> LocalTensorMode | None:
    """The innermost mode, unless it is disabled."""
    mode = local_tensor_mode()
    return None if mode is None or mode._disable else mode


def maybe_disable_local_tensor_mode() -> contextlib.AbstractContextManager[None]:
    """Disables the mode that is at work, if there is one."""
    mode = local_tensor_mode()
    return contextlib.nullcontext() if mode is None else mode.disable()


def rank_map(cb: Callable[[int], Tensor]) -> Tensor:
    """What a function gives for each rank; outside of a mode, for the rank of this process."""
    mode = local_tensor_mode()
    return cb(dist.get_rank()) if mode is None else mode.rank_map(cb)


def tensor_map(tensor: Tensor, cb: Callable[[int, Tensor], Tensor | None]) -> Tensor | None:
    """What a function gives for each rank and its tensor."""
    mode = local_tensor_mode()
    if mode is None or not isinstance(tensor, LocalTensor):
        return cb(dist.get_rank(), tensor)
    return mode.tensor_map(tensor, cb)


def maybe_run_for_local_tensor(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs for each rank where a mode is at work."""
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        mode = enabled_local_tensor_mode()
        if mode is None:
            return func(*args, **kwargs)
        with mode.disable():
            return _for_each_rank_run_func(func, mode.ranks, args, kwargs, alias=False)
    return wrapper


def reconcile_args(args: Any, kwargs: dict[str, Any] | None = None) -> Any:
    """Arguments with, for each local tensor, what all ranks have."""
    return _pytree.tree_map(lambda leaf: leaf.reconcile() if isinstance(leaf, LocalTensor)
                            else leaf, (args, kwargs or {}))


__all__ = ["LocalTensor", "LocalTensorMode", "enabled_local_tensor_mode",
           "get_local_tensor_mode_list", "local_tensor_mode", "maybe_disable_local_tensor_mode",
           "maybe_run_for_local_tensor", "rank_map", "reconcile_args", "tensor_map"]
