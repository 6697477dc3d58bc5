"""What TorchScript reads of Python: marks on functions, what annotations mean, overloads, and one
name for two functions of which a flag chooses.

Nothing is compiled here; the marks and annotations are for code that asks about them.

>>> import flambeau
>>> @flambeau.jit.unused
... def helper(x):
...     return x
>>> is_ignored_fn(helper), should_drop(helper)
(True, True)
>>> is_optional(int | None)
True
"""
from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import inspect
import io
import pickle
import types
import typing
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from flambeau._jit_internal.annotations import (
    _isinstance,
    _uncompiled,
    check_args_exist,
    check_empty_containers,
    container_checker,
    is_dict,
    is_final,
    is_future,
    is_list,
    is_optional,
    is_rref_instance,
    is_tuple,
    is_union,
    raise_error_container_parameter_missing,
)
from flambeau._support.own_methods import adopt
from flambeau.core.tensor import Tensor
from flambeau.dispatch.by_flag import boolean_dispatch as boolean_dispatch
from flambeau.dispatch.by_flag import boolean_dispatched
from flambeau.futures import Future

_F = TypeVar("_F", bound=Callable[..., Any])

FAKE_FILENAME_PREFIX = "__torch_jit_dataclass"


class BroadcastingListCls:
    """`BroadcastingList2[int]`: the annotation of a list of two for which one number may stand."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def is_scripting() -> bool:
    """False: the code that asks runs as Python."""
    return False


# ---- marks on functions --------------------------------------------------------------------------


class FunctionModifiers:
    """What a mark says that TorchScript shall do with a function."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = ("if this method is not scripted, copy the python method onto the "
                              "scripted model")
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _marked(modifier: str) -> Callable[[_F], _F]:
    def mark(fn: _F) -> _F:
        fn._torchscript_modifier = modifier                     # type: ignore[attr-defined]
        return fn
    return mark


def export(fn: _F) -> _F:
    """Mark a method that TorchScript shall compile although `forward` does not call it."""
    return _marked(FunctionModifiers.EXPORT)(fn)


def unused(fn: Any) -> Any:
    """Mark a function that TorchScript shall leave out; of a property both its functions."""
    if isinstance(fn, property):
        for function in (fn.fget, fn.fset):
            if function is not None:
                _marked(FunctionModifiers.UNUSED)(function)
        return fn
    return _marked(FunctionModifiers.UNUSED)(fn)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that TorchScript shall leave to Python."""
    if callable(drop):
        return _marked(FunctionModifiers.IGNORE)(drop)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got "
                           f"{drop}")
    on_export = kwargs.pop("drop_on_export", None)
    if on_export is not None:
        warnings.warn("ignore(drop_on_export=True) has been deprecated. TorchScript will now drop "
                      "the function call on compilation. Use torch.jit.unused now. {}",
                      category=FutureWarning, stacklevel=2)
        drop = on_export
    elif drop:
        warnings.warn("ignore(True) has been deprecated. TorchScript will now drop the function "
                      "call on compilation. Use torch.jit.unused now. {}", category=FutureWarning,
                      stacklevel=2)
    return _marked(FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def _drop(fn: _F) -> _F:
    """Mark a function of which TorchScript shall not even see the signature."""
    return _marked(FunctionModifiers._DROP)(fn)


def _copy_to_script_wrapper(fn: _F) -> _F:
    """Mark a method that a scripted module keeps as Python."""
    return _marked(FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)(fn)


def get_torchscript_modifier(fn: Any) -> str | None:
    """The mark of a function; None for what is no function."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Give `new` the mark that `orig` has."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        new._torchscript_modifier = modifier


def should_drop(fn: Any) -> bool:
    """Is a function left out?"""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def is_ignored_fn(fn: Any) -> bool:
    """Is a function left out, or left to Python?"""
    return should_drop(fn) or get_torchscript_modifier(fn) == FunctionModifiers.IGNORE


def _is_drop_fn(fn: Any) -> bool:
    return get_torchscript_modifier(fn) == FunctionModifiers._DROP


def module_has_exports(mod: Any) -> bool:
    """Has a module a method that is marked for export?"""
    return any(get_torchscript_modifier(getattr(mod, name)) == FunctionModifiers.EXPORT
               for name in dir(mod) if hasattr(mod, name) and callable(getattr(mod, name)))


def get_static_fn(cls: Any, fn: str) -> Any:
    """A static method of a class or of an instance."""
    return inspect.getattr_static(cls, fn).__func__


def is_static_fn(cls: Any, fn: str) -> bool:
    """Is a member a static method?"""
    return isinstance(inspect.getattr_static(cls, fn, default=None), staticmethod)


# ---- two functions of which a flag chooses -------------------------------------------------------

def _try_get_dispatched_fn(fn: Any) -> dict[str, Any] | None:
    """The functions between which `fn` chooses."""
    return boolean_dispatched.get(fn) if callable(fn) else None


# ---- overloads -----------------------------------------------------------------------------------

_overloaded_fns: dict[str, list[Callable[..., Any]]] = {}
_overloaded_methods: dict[str, dict[str, list[Callable[..., Any]]]] = {}


def _overload(func: _F) -> _F:
    """Declare one of several signatures of a function, whose body is `...` or `pass`."""
    _overloaded_fns.setdefault(_qualified_name(func), []).append(func)
    return func


def _get_fn_overloads(qual_name: str) -> list[Callable[..., Any]] | None:
    return _overloaded_fns.get(qual_name)


def _clear_fn_overloads(qual_name: str) -> None:
    del _overloaded_fns[qual_name]


def _overload_method(func: _F) -> _F:
    """Declare one of several signatures of a method."""
    of_class = _overloaded_methods.setdefault(_qualified_name(func), {})
    of_class.setdefault(func.__qualname__.split(".")[-2], []).append(func)
    return func


def _get_overloaded_methods(method: Any, mod_class: type) -> list[Callable[..., Any]] | None:
    """The signatures that are declared for a method of a class."""
    if not hasattr(method, "__name__"):
        return None
    return _overloaded_methods.get(_qualified_name(method), {}).get(mod_class.__name__)


# ---- names ---------------------------------------------------------------------------------------


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name of a function or class in TorchScript: its module and name under `__torch__`.

    >>> _qualified_name(flambeau.nn.Linear)
    '__torch__.torch.nn.modules.linear.Linear'
    """
    if hasattr(obj, "_jit_override_qualname"):
        return obj._jit_override_qualname
    if hasattr(obj, "qualified_name") and not isinstance(obj, type):
        return obj.qualified_name
    if getattr(obj, "__name__", None):
        name = "_lambda" if obj.__name__ == "<lambda>" else obj.__name__
    else:
        name = obj.name if hasattr(obj, "name") else None
    if name is None:
        raise RuntimeError("Could not get name of python class object")
    module = obj.__module__
    if module is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be "
                           "None.")
    if module.partition(".")[0] == "flambeau":
        module = f"torch{module[8:]}"
    if module == "__main__":
        module = "__torch__"
    elif mangle_name:
        module = f"__torch__.{module}"
    if "." in name:
        raise RuntimeError(f"Could not get qualified name for class '{name}': '{name}' is not a "
                           "valid identifier")
    return f"{module}.{name}"


def createResolutionCallbackFromEnv(lookup_base: Any) -> Callable[[str], Any]:
    """What finds a dotted name among the attributes of an object, or among the builtins."""
    def look_up(name: str) -> Any:
        first, *rest = name.strip().split(".")
        found = getattr(lookup_base, first, getattr(builtins, first, None))
        return functools.reduce(getattr, rest, found)
    return look_up


def createResolutionCallbackFromFrame(frames_up: int = 0) -> Callable[[str], Any]:
    """What finds a name as the caller would, or one `frames_up` further out."""
    frame: Any = inspect.currentframe()
    for _ in range(frames_up + 1):
        frame = frame and frame.f_back
    known = {**frame.f_globals, **frame.f_locals} if frame is not None else {}
    return createResolutionCallbackFromEnv(types.SimpleNamespace(**known))


def get_closure(fn: Any) -> dict[str, Any]:
    """The names that a function can see: globals, and those that it closes over."""
    known = dict(fn.__globals__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        with contextlib.suppress(ValueError):           # not filled yet
            known[name] = cell.cell_contents
    return known


def createResolutionCallbackFromClosure(fn: Any) -> Callable[[str], Any]:
    """What finds a name as the body of a function would."""
    return createResolutionCallbackFromEnv(types.SimpleNamespace(**get_closure(fn)))


def createResolutionCallbackForClassMethods(cls: type) -> Callable[[str], Any]:
    """What finds a name as the methods of a class would."""
    known: dict[str, Any] = {}
    for function in vars(cls).values():
        if inspect.isroutine(function) and hasattr(function, "__globals__"):
            known |= get_closure(function)
    return lambda name: known.get(name, getattr(builtins, name, None))


def get_callable_argument_names(fn: Any) -> list[str]:
    """The names of a function's arguments; none where not all can be passed by place."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return []
    return [p.name for p in parameters]


def can_compile_class(cls: type) -> bool:
    """Would TorchScript take a class: are all its methods written in Python?"""
    if is_ignored_fn(cls) or (set(cls.mro()) & _uncompiled()):
        return False
    if issubclass(cls, (tuple, BaseException)):
        return False
    return all(hasattr(f, "__code__") for f in vars(cls).values() if inspect.isroutine(f)
               and not isinstance(f, (staticmethod, classmethod)))


def _create_named_tuple(t: Any, unqual_name: str, field_names: list[str],
                        defaults: tuple[Any, ...]) -> Any:
    """The values `t` as a named tuple."""
    return collections.namedtuple(unqual_name, field_names, defaults=defaults)(*t)


# ---- tensors anywhere in an object ---------------------------------------------------------------


class _TensorExtractor(pickle.Pickler):
    """A pickler that notes the tensors that it meets."""

    def __init__(self, *args: Any, tensors: list[Tensor], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.tensors = tensors

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            self.tensors.append(obj)
            return ""
        # What cannot be pickled holds no tensors that anyone could reach.
        return "" if isinstance(obj, (Future, types.GeneratorType)) else None


def _extract_tensors(obj: Any) -> list[Tensor]:
    """All tensors in an object.

    >>> _extract_tensors({"a": [flambeau.ones(1)], "b": (2, flambeau.zeros(1))})
    [tensor([1.]), tensor([0.])]
    """
    tensors: list[Tensor] = []
    _TensorExtractor(io.BytesIO(), protocol=-1, tensors=tensors).dump(obj)
    return tensors


@contextlib.contextmanager
def _disable_emit_hooks() -> Iterator[None]:
    """A context without the hooks that TorchScript calls when it has compiled: it never does."""
    yield


class _IgnoreContextManager(contextlib.AbstractContextManager):
    """A block that TorchScript shall leave to Python: it runs as it stands."""

    def __init__(self, **kwargs: Any):
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def _get_model_id(obj: Any) -> str | None:
    """What identifies a compiled model: nothing, as there is none."""
    return None

adopt(globals(), ("_jit_internal.", "dispatch.by_flag"))
