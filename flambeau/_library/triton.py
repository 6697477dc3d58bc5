"""Kernels in Triton, which are for GPUs: there are none."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

triton_ops_to_kernels: dict[str, list[object]] = {}


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """An op whose function may call Triton's kernels: on the CPU it is one made of other ops.

    >>> import flambeau
    >>> @triton_op("doc::plus_one", mutates_args=())
    ... def plus_one(x: flambeau.Tensor) -> flambeau.Tensor:
    ...     return x + 1
    >>> plus_one(flambeau.ones(1))
    tensor([2.])
    """
    from flambeau._library.custom_ops import custom_op

    def make(function: Callable[..., Any]) -> Any:
        made = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.register_fake(function)
        return made
    return make if fn is None else make(fn)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Not offered: Triton writes kernels for GPUs."""
    raise RuntimeError("wrap_triton only works on functions annotated with triton.jit or "
                       "triton.autotune: Triton writes kernels for GPUs")


def capture_triton(triton_kernel: Any, /) -> Any:
    """The former name of `wrap_triton`."""
    return wrap_triton(triton_kernel)


def get_triton_kernels_for_op(name: str) -> list[object]:
    """The kernels that an op calls: none."""
    return triton_ops_to_kernels.get(name, [])


def is_wrap_triton_enabled() -> bool:
    """Are calls of Triton's kernels shown to tracers? There are none."""
    return True


__all__ = ["capture_triton", "get_triton_kernels_for_op", "is_wrap_triton_enabled", "triton_op",
           "wrap_triton"]
