"""`compile` and what programs say around it. Nothing is compiled.

A compiled function or module runs the program as it stands, as PyTorch's backend "eager" does: the
results are those of a compiled one, and so are the keys of a module's `state_dict`. What tunes a
compiler is checked where a mistake could be the user's, and has no other effect.

>>> @flambeau.compile(fullgraph=True)
... def f(x):
...     return x.sin() + 1
>>> f(flambeau.zeros(2))
tensor([1., 1.])
>>> flambeau.compiler.is_compiling()
False
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.compiler._module import OptimizedModule
from flambeau.core.tensor import Tensor
from flambeau.nn import Module

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = {"inductor": (), "eager": ("debug",), "aot_eager": ("debug",)}
_STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager",
            "eager_on_recompile", "fail_on_recompile")
_chosen: dict[str, Any] = {"backend": None, "stance": "default", "collectives": False}


class InvalidBackend(RuntimeError):
    """`compile` was given a backend that does not exist."""


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
            backend: Any = None, mode: str | None = None, options: dict[str, Any] | None = None,
            name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
            isolate_recompiles: bool = False, shapes_spec: Any = None) -> Any:
    """`model`, a function or a module, in the form of a compiled one; it runs as before.

    Without `model` it is a decorator. The backends "inductor", "eager" and "aot_eager" are the
    same here; backends that are functions, which get a graph, do not exist.

    >>> model = flambeau.compile(flambeau.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified "
                           "at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    _check_backend(get_default_backend() if backend is None else backend)
    if model is None:
        return functools.partial(_compiled, disabled=disable)
    return _compiled(model, disable)


def _check_backend(backend: Any) -> None:
    if callable(backend):
        raise NotImplementedError("torch.compile with a function as backend: nothing is compiled, "
                                  "so it would not be called")
    if backend not in _BACKENDS:
        raise InvalidBackend(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` "
                             "for available backends.")


def _compiled(model: Any, disabled: bool = False) -> Any:
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return model if disabled else OptimizedModule(model)
    if isinstance(model, type):
        return model                    # of a class, its instances' calls
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disabled:
        return model

    @functools.wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)
    compiled.__dict__["_torchdynamo_orig_callable"] = model
    return compiled


# ---- is this compiled? --------------------------------------------------------------------------

def is_compiling() -> bool:
    """False: nothing is compiled."""
    return False


def is_dynamo_compiling() -> bool:
    """False: nothing is compiled."""
    return False


def is_exporting() -> bool:
    """False: `export` traces without changing what programs see."""
    return False


_is_non_strict_tracing_flag = False


def _is_non_strict_tracing() -> bool:
    return _is_non_strict_tracing_flag


@contextlib.contextmanager
def _non_strict_tracing_context() -> Iterator[None]:
    """A block that `make_fx` traces."""
    global _is_non_strict_tracing_flag
    old, _is_non_strict_tracing_flag = _is_non_strict_tracing_flag, True
    try:
        yield
    finally:
        _is_non_strict_tracing_flag = old


@contextlib.contextmanager
def _patch_engine_backward() -> Iterator[None]:
    """Changes nothing: traced nodes of the backward get no further notes."""
    yield


# ---- decorators for parts of programs -----------------------------------------------------------

def _decorator(function: Any) -> Any:
    return _same if function is None else _same(function)


def _same(function: Any) -> Any:
    if not callable(function):
        raise AssertionError(f"A callable function is expected, but {type(function)} is provided.")
    return function


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` as it is: it is not compiled. Without `fn` it is a decorator."""
    if fn is not None and not callable(fn):
        raise AssertionError("fn must be callable")
    return OptimizedModule(fn) if isinstance(fn, Module) else _decorator(fn)


def allow_in_graph(fn: Any) -> Any:
    """`fn`, or the functions of a list, as they are."""
    return [_same(f) for f in fn] if isinstance(fn, list | tuple) else _same(fn)


def assume_constant_result(fn: Any) -> Any:
    """`fn` as it is: each call computes its result."""
    fn._dynamo_marked_constant = True
    return fn


def nested_compile_region(fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8,
                          reuse_hash_fn: Any = None) -> Any:
    """`fn` as it is; or a decorator."""
    return _decorator(fn)


def substitute_in_graph(original_fn: Any, *, can_constant_fold_through: bool = False,
                        skip_signature_check: bool = False) -> Callable[[Any], Any]:
    """A decorator for a function that could replace `original_fn` in a graph; it stays itself."""
    _same(original_fn)
    return _same


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as a function of tensors.

    >>> import numpy
    >>> flambeau.compiler.wrap_numpy(numpy.cumsum)(flambeau.ones(3))
    tensor([1., 2., 3.])
    """
    import numpy as np

    import flambeau
    from flambeau.utils import _pytree

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _pytree.tree_map(
            lambda v: v.numpy() if isinstance(v, Tensor) else v, (args, kwargs))
        return _pytree.tree_map(
            lambda v: flambeau.as_tensor(v) if isinstance(v, np.ndarray | np.generic) else v,
            fn(*args, **kwargs))
    return wrapped


# ---- the state of the compiler that is not there ------------------------------------------------

def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `compile` takes as backend.

    >>> flambeau.compiler.list_backends()
    ['inductor']
    """
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in _BACKENDS.items() if not excluded.intersection(tags))


def get_default_backend() -> str:
    """The backend that `compile` takes when none is given."""
    return _chosen["backend"] or "inductor"


def set_default_backend(backend: str | None) -> None:
    """Choose the backend that `compile` takes when none is given; None for the usual one."""
    if backend is not None:
        _check_backend(backend)
    _chosen["backend"] = backend


class _Stance:
    """A stance, as a call, context or decorator."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}', should be one of: "
                               f"{', '.join(_STANCES)}")
        if force_backend is not None:
            if stance != "default":
                raise RuntimeError("non-default stance cannot have force_backend set")
            _check_backend(force_backend)
        self.stance, self._before = stance, _chosen["stance"]
        _chosen["stance"] = stance

    def __enter__(self) -> _Stance:
        _chosen["stance"] = self.stance
        return self

    def __exit__(self, *exception: Any) -> None:
        _chosen["stance"] = self._before

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _chosen["stance"] = self._before

        @functools.wraps(fn)
        def under(*args: Any, **kwargs: Any) -> Any:
            with _Stance(self.stance):
                return fn(*args, **kwargs)
        return under


def set_stance(stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
               force_backend: Any = None) -> Any:
    """How calls of compiled functions are handled, as a call, context or decorator; they run as
    they stand under each stance.

    >>> with flambeau.compiler.set_stance("force_eager"):
    ...     flambeau.compile(flambeau.sin)(flambeau.zeros(1))
    tensor([0.])
    """
    return _Stance(stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe,
                   force_backend=force_backend)


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Remember the choice, which has no effect; the former one."""
    before, _chosen["collectives"] = _chosen["collectives"], bool(enabled)
    return before


def reset() -> None:
    """Has nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """Has no recorded graphs to tell."""


def save_cache_artifacts() -> Any:
    """None: compiling has left nothing to save."""
    return None


def load_cache_artifacts(serialized_artifacts: bytes) -> Any:
    """None: there is no cache to fill."""
    return None


# ---- which assumptions of a compiled function are checked ---------------------------------------

def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """For `options`: check none."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """For `options`: check all but those on global variables."""
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """For `options`: check all but those on the modules of `nn`."""
    return [not entry.orig_guard.source.is_unspecialized_builtin_nn_module()
            for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """For `options`: check all but those on modules."""
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """For `options`: check only those on tensors, and with `keep_parameters` on parameters."""
    from flambeau.nn import Parameter
    return [entry.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(
        entry.value, Parameter)) for entry in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """For `options`: check only those that are not about Python: on tensors, shapes and modes."""
    return [entry.guard_type in ("TENSOR_MATCH", "SHAPE_ENV", "GLOBAL_STATE")
            for entry in guard_entries]


def load_compiled_function(file: Any, *, f_globals: dict[str, object] | None = None,
                           external_data: dict[str, Any] | None = None) -> Any:
    """Not offered: files of compiled functions hold machine code for PyTorch."""
    raise NotImplementedError("load_compiled_function: flambeau compiles nothing ahead of time")


compile.__module__ = "torch"
__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends",
    "load_cache_artifacts", "load_compiled_function", "nested_compile_region",
    "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance", "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph", "wrap_numpy"]
