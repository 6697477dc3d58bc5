"""What programs say to PyTorch's tracer: which sizes may differ, and what it should leave alone.

There is no such tracer here. What is said of tensors is noted on them, as PyTorch does, for
programs that look.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flambeau import Tensor
from flambeau.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    nested_compile_region,
    set_stance,
    substitute_in_graph,
)


@dataclass(frozen=True, slots=True)
class _DimRange:
    """The sizes that `mark_dynamic` allows a dimension; files of nested tensors hold it."""
    dim: int
    min: int | None
    max: int | None


def _note(t: Any, name: str, index: Any) -> None:
    indices = index if isinstance(index, (list, tuple)) else (index,)
    if not hasattr(t, name):
        setattr(t, name, set())
    getattr(t, name).update(indices)


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: list[Any] | None = None) -> None:
    """Say that sizes of a tensor may differ between calls.

    >>> import flambeau
    >>> x = flambeau.ones(2, 3)
    >>> mark_dynamic(x, 0)
    >>> x._dynamo_dynamic_indices
    {0}
    """
    _note(t, "_dynamo_dynamic_indices", index)


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Say that sizes may differ, where that can be."""
    _note(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(t: Any, index: Any, hint_override: int | None = None, strict: bool = False,
                  specialize_on: list[Any] | None = None, *, shape_id: str | None = None,
                  min: int | None = None, max: int | None = None) -> None:
    """Say that nothing may be assumed of sizes of a tensor."""
    _note(t, "_dynamo_unbacked_indices", index)


def mark_static(t: Any, index: Any = None) -> None:
    """Say that sizes of a tensor (all if `index` is None) never differ; of a class of modules, that
    its attributes do not."""
    cls: Any = t
    if isinstance(t, type):
        cls._dynamo_marked_static = True
        return
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static expects a tensor/nn.Module class but received {type(t)}")
    _note(t, "_dynamo_static_indices", list(range(t.ndim)) if index is None else index)


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor stays where it is."""
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    noted: Any = t
    noted._dynamo_static_input_type = "guarded" if guard else "unguarded"


def disallow_in_graph(fn: Any) -> Any:
    """Say that calls of a function (or of several) stay out of graphs: `fn` as it is."""
    return [disallow_in_graph(f) for f in fn] if isinstance(fn, (list, tuple)) else fn


def forbid_in_graph(fn: Any) -> Any:
    """Say that a function must not be called in a graph: `fn` as it is."""
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(f) for f in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    fn._dynamo_forbidden = True
    return fn


def nonstrict_trace(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Say that a function is traced below Python: it as it is."""
    return traceable_fn


def graph_break(msg: str = "") -> None:
    """Says to the tracer that a graph ends here."""


def skip_frame(msg: str = "") -> None:
    """Says to the tracer that it should leave a function alone."""


def step_unsupported(msg: str = "") -> None:
    """Says to the tracer that it cannot go on."""


def run(fn: Any = None) -> Any:
    """`fn` without further compilation: as it is."""
    return fn


def skip(fn: Any = None) -> Any:
    """`fn` left alone by the tracer: as it is."""
    return fn if fn is not None else skip


def override_optimization_hint(t: Any, hint: int) -> None:
    """Says what a size is likely to be."""


@contextlib.contextmanager
def dont_skip_tracing(fn: Any = None) -> Iterator[None]:
    """Inside, nothing is left alone."""
    yield


class error_on_graph_break:
    """Whether a graph must be whole; as a context or decorator."""

    def __init__(self, error_on_graph_break: bool):
        self.error_on_graph_break = error_on_graph_break

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


_PATCHED_WHILE_TRACING = (
    "verbose", "verify_correctness", "rewrite_assert_with_torch_assert", "capture_scalar_outputs",
    "allow_unspec_int_on_nn_module", "skip_torchrec", "dont_skip_tracing", "nested_graph_breaks")


class patch_dynamo_config(error_on_graph_break):
    """Switches of the tracer, for a block or function: those that may change while it traces."""

    def __init__(self, arg1: Any = None, arg2: Any = None, **kwargs: Any):
        from flambeau._dynamo import config
        given = arg1 if isinstance(arg1, dict) else {} if arg1 is None else {arg1: arg2}
        for name in (*given, *kwargs):
            if name not in _PATCHED_WHILE_TRACING:
                raise ValueError(f"patch_dynamo_config does not support patching config {name}")
        self._patch = config.patch(arg1, arg2, **kwargs)        # type: ignore[attr-defined]

    def __enter__(self) -> None:
        self._patch.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._patch.__exit__(*exception)


__all__ = ["allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph",
           "error_on_graph_break", "forbid_in_graph", "graph_break", "mark_dynamic", "mark_static",
           "mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "nested_compile_region",
           "nonstrict_trace", "patch_dynamo_config", "run", "set_stance", "skip", "skip_frame",
           "step_unsupported", "substitute_in_graph"]
