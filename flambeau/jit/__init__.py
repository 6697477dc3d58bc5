"""`torch.jit`, without a compiler: scripted and traced programs run as the Python they are.

`script` and `trace` give wrappers that behave as the original does. What needs TorchScript itself,
files of it above all, raises `NotImplementedError`.

>>> import flambeau
>>> @script
... def double(x):
...     return 2 * x
>>> double(flambeau.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau._jit_internal import (
    Final,
    _drop,
    _IgnoreContextManager,
    _isinstance,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)
from flambeau._support.lazy.modules import lazy_modules as _lazy_modules
from flambeau.futures import Future
from flambeau.jit._async import fork, wait
from flambeau.jit._await import _Await, _awaitable, _awaitable_nowait, _awaitable_wait
from flambeau.jit._freeze import freeze, optimize_for_inference, run_frozen_optimizations
from flambeau.jit._fuser import *
from flambeau.jit._script import (
    Attribute,
    CompilationUnit,
    Error,
    RecursiveScriptClass,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptWarning,
    _unwrap_optional,
    interface,
    script,
    script_method,
)
from flambeau.jit._serialization import (
    export_opnames,
    jit_module_from_flatbuffer,
    load,
    save,
    save_jit_module_to_flatbuffer,
)
from flambeau.jit._trace import (
    ONNXTracedModule,
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    TracingCheckError,
    _flatten,
    _get_trace_graph,
    _script_if_tracing,
    _unique_state_dict,
    is_tracing,
    script_if_tracing,
    trace,
    trace_module,
)

del annotations                                         # the submodule is imported when asked for
_fork, _wait = fork, wait
_set_fusion_strategy = set_fusion_strategy
isinstance = _isinstance

__getattr__ = _lazy_modules(__name__, "_builtins", "_recursive", "_state", "annotations",
                            "frontend", "mobile")


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`, whose type TorchScript shall take to be `the_type`."""
    return the_value


class strict_fusion:
    """A context in which everything should be fused; nothing ever is."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        pass


@contextlib.contextmanager
def _hide_source_ranges() -> Iterator[None]:
    """Inside, printed graphs don't say where they come from: there are none."""
    yield


_onednn = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Remembered; nothing is fused."""
    global _onednn
    _onednn = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told."""
    return _onednn


__all__ = ["Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule",
           "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze",
           "ignore", "interface", "isinstance", "load", "onednn_fusion_enabled",
           "optimize_for_inference", "save", "script", "script_if_tracing", "set_fusion_strategy",
           "strict_fusion", "trace", "trace_module", "unused", "wait"]
