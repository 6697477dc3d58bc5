"""Small functions of PyTorch's tracer that libraries take from here."""
from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

__all__ = ["clone_input", "counters", "deepcopy_to_fake_tensor",
           "disable_cache_limit", "is_compile_supported", "same",
           "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)     # what a tracer counts: nothing


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` accepts programs for a kind of device.

    >>> is_compile_supported("cpu"), is_compile_supported("cuda")
    (True, False)
    """
    return device_type == "cpu"


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, but not again of the same."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def deepcopy_to_fake_tensor(obj: Any, fake_mode: Any) -> Any:
    """A copy whose tensors are fake ones of a mode.

    >>> import flambeau
    >>> from flambeau._subclasses import FakeTensorMode
    >>> deepcopy_to_fake_tensor(flambeau.nn.Linear(2, 1), FakeTensorMode()).bias
    Parameter(FakeTensor(..., size=(1,), requires_grad=True))
    """
    import copy

    from flambeau import Tensor, nn
    memo: dict[int, Any] = {}
    for module in obj.modules() if isinstance(obj, nn.Module) else ():
        for tensor in (*module._parameters.values(), *module._buffers.values(),
                       *(v for v in module.__dict__.values() if isinstance(v, Tensor))):
            if tensor is not None:
                memo[id(tensor)] = fake_mode.from_tensor(tensor)
    return copy.deepcopy(obj, memo)


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """Inside, a function may be compiled any number of times."""
    from flambeau._dynamo import config
    names = ("recompile_limit", "accumulated_recompile_limit")
    before = [getattr(config, name) for name in names]
    for name in names:
        setattr(config, name, sys.maxsize)
    try:
        yield
    finally:
        for name, value in zip(names, before):
            setattr(config, name, value)


def is_compiling() -> bool:
    """Is a program being compiled? No."""
    return False


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """A copy of a tensor, with its gradient."""
    found = x.detach().clone().to(dtype or x.dtype).requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        found.grad = clone_input(x.grad, dtype=dtype)
    return found


def same(ref: Any, res: Any, *options: Any, tol: float = 1e-4, equal_nan: bool = False,
         **more: Any) -> bool:
    """Are two results alike, to a tolerance?"""
    from flambeau.testing import assert_close
    try:
        assert_close(res, ref, atol=tol, rtol=tol, equal_nan=equal_nan)
    except AssertionError:
        return False
    return True


def compile_times(repr: str = "str", aggregate: bool = False) -> str:
    """How long compiling has taken: nothing was compiled."""
    return ""
