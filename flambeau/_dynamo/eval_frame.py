"""What runs instead of Python's frames: nothing does."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._dynamo._absent import TRACER, absent_function
from flambeau.compiler._module import OptimizedModule

unset = object()
cached_backends: dict[int, Any] = {}


def is_dynamo_supported() -> bool:
    """Can functions be compiled? No."""
    return False


def is_inductor_supported() -> bool:
    """Is there a compiler? No."""
    return False


def check_if_dynamo_supported() -> None:
    """Nothing is compiled, and so nothing is refused."""


def innermost_fn(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the program's, of a compiled one.

    >>> import flambeau
    >>> def f(x): return x
    >>> innermost_fn(flambeau.compile(f)) is f
    True
    """
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn


def optimize(backend: Any = "inductor", *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator: `torch.compile` with that backend."""
    from flambeau.compiler import compile
    return lambda fn: compile(fn, backend=backend)


def optimize_assert(backend: Any = "inductor", **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator: `torch.compile` of the whole function with that backend."""
    from flambeau.compiler import compile
    return lambda fn: compile(fn, backend=backend, fullgraph=True)


def export(f: Callable[..., Any], *extra_args: Any, aten_graph: bool = False, **options: Any
           ) -> Any:
    """A function of arguments that gives the graph of what `f` does with them, and the guards it
    holds under: none."""
    def inner(*args: Any, **kwargs: Any) -> Any:
        from flambeau._dynamo.functional_export import dynamo_graph_capture_for_export
        graph = dynamo_graph_capture_for_export(f)(*args, **kwargs)
        return ExportResult(graph, set())
    return inner(*extra_args) if extra_args else inner


class ExportResult(tuple):
    """A graph module, and the guards that it holds under."""

    graph_module = property(lambda self: self[0])
    guards = property(lambda self: self[1])

    def __new__(cls, graph_module: Any, guards: Any) -> ExportResult:
        return super().__new__(cls, (graph_module, guards))


explain = absent_function(__name__, "explain", TRACER)


def remove_from_cache(f: Any) -> None:
    """There are no compiled functions to forget."""


def reset_code(*args: Any) -> None:
    """There are no compiled functions to forget."""


skip_code = reset_code

__all__ = ["ExportResult", "OptimizedModule", "check_if_dynamo_supported", "explain", "export",
           "innermost_fn", "is_dynamo_supported", "is_inductor_supported", "optimize",
           "optimize_assert", "remove_from_cache"]
