"""The names of PyTorch's tracer that programs mention. There is none: see `flambeau.compiler`."""
from __future__ import annotations

from flambeau._dynamo import config
from flambeau._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from flambeau._dynamo.decorators import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    patch_dynamo_config,
    run,
    set_stance,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from flambeau._dynamo.eval_frame import explain, export, optimize, optimize_assert
from flambeau._support.lazy.modules import lazy_package
from flambeau.compiler import is_compiling, reset
from flambeau.compiler._module import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
           "disallow_in_graph", "error_on_graph_break", "explain", "export", "forbid_in_graph",
           "graph_break", "is_compiling", "list_backends", "lookup_backend", "mark_dynamic",
           "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic",
           "nonstrict_trace", "optimize", "optimize_assert", "patch_dynamo_config",
           "register_backend", "reset", "reset_code_caches", "run", "set_stance", "skip_frame",
           "step_unsupported", "substitute_in_graph"]


def reset_code_caches() -> None:
    """There are no compiled functions to forget."""


def reset_recompile_user_contexts() -> None:
    """There is nothing to forget."""


__getattr__ = lazy_package(__name__)
