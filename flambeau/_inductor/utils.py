"""Small functions of the compiler's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.fx import GraphModule

GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]      # what the compiler takes for a graphics processor


def count_tangents(fx_g: GraphModule) -> int:
    """How many inputs of a backward graph are saved by the forward graph: they come first.

    >>> import flambeau
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> count_tangents(make_fx(lambda x, tangents_1: x * tangents_1)(flambeau.ones(1),
    ...                                                              flambeau.ones(1)))
    1
    """
    places = fx_g.graph.find_nodes(op="placeholder")
    saved = [i for i, node in enumerate(places) if "tangents" not in node.name
             and "bwd_seed" not in node.name and "bwd_base_offset" not in node.name
             and "bwd_rng_state" not in node.name]
    if saved != list(range(len(saved))):
        raise AssertionError(f"saved values have to come first, they are at {saved}")
    return len(saved)


def do_bench_using_profiling(fn: Callable[[], Any], warmup: int = 25, rep: int = 100) -> float:
    """How long a call takes, in milliseconds."""
    from time import perf_counter
    fn()
    start = perf_counter()
    for _ in range(3):
        fn()
    return (perf_counter() - start) / 3 * 1e3


def has_triton() -> bool:
    """Is there Triton, and a GPU for it? No."""
    return False


def is_cpu_device(inputs: Any) -> bool:
    """Are all tensors on the CPU?"""
    return all(x.device.type == "cpu" for x in inputs if hasattr(x, "device"))


def run_and_get_code(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """The result of a call, and the code that was compiled for it: none."""
    return fn(*args, **kwargs), []


def ceildiv(number: int, denom: int) -> int:
    """The quotient, rounded up."""
    return -(number // -denom)


__all__ = ["ceildiv", "count_tangents", "do_bench_using_profiling", "has_triton", "is_cpu_device",
           "run_and_get_code"]
