"""Functions that PyTorch too writes in Python: `nn.functional.softmax`, `torch.einsum`.

Python itself binds their arguments, and the ops that they call refuse what does not fit. What is
added to the body is that modes, and types that override functions, are asked first:

    @python_function(namespace="nn.functional")
    def softmin(input, dim=None, _stacklevel=3, dtype=None): …
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

from flambeau._support.signatures import ANY_ARGUMENTS
from flambeau._support.source_locations import native
from flambeau.core.calling import overrides
from flambeau.core.calling.overrides import intercept
from flambeau.core.modes import function_modes, interceptors
from flambeau.core.op import Op, is_passive, module_of, public, table
from flambeau.core.tensor import Tensor


class PythonFunction:
    """What stands in front of a body; C asks it when a call is watched or has other types."""

    def __init__(self, body: Callable[..., Any], op: Op):
        self.body, self.op = body, op
        update_wrapper(self, body)
        self.twin = self
        code: Any = body.__code__
        self.takes_rest = bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
        names, count = code.co_varnames, code.co_argcount
        defaults: tuple[Any, ...] = body.__defaults__ or ()
        self.names, self.needed = names[:count], names[:count - len(defaults)]
        self.defaults = dict(zip(names[len(self.needed):count], defaults))
        self.defaults.update(body.__kwdefaults__ or {})

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        wanted = not is_passive(map(type, (*args, *kwargs.values()))) \
            and overrides.needs_override(args, kwargs)
        if function_modes.get() or (wanted and overrides.overriding_args(args, kwargs)):
            args, kwargs = self.normalize_call(args, kwargs)
        if interceptors:
            return intercept(self.op, args, kwargs, True)
        if wanted:
            return overrides.call(self.op, args, kwargs)
        return self.body(*args, **kwargs)

    def normalize_call(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A call as who watches is shown it: what has a default by keyword, all else by place.
        A wrong call stays as it is."""
        if self.takes_rest or len(args) > len(self.names):
            return args, kwargs
        given = dict(zip(self.names, args))
        if not given.keys().isdisjoint(kwargs):
            return args, kwargs
        given.update(kwargs)
        by_name = {**self.defaults, **given}
        try:
            by_place = tuple([by_name.pop(name) for name in self.needed])
        except KeyError:
            return args, kwargs
        return (by_place, by_name) if len(by_name) == len(self.defaults) else (args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(vars(self)["__qualname__"])      # a global of its module, as functions are


def resolve_tensors(function: Any) -> None:
    """The class in place of "Tensor": programs look among annotations for arguments that are
    tensors."""
    notes = function.__annotations__
    for name, note in notes.items():
        if note == "Tensor":
            notes[name] = Tensor


def python_function(body: Any = None, *, namespace: Any = "torch", method: bool = False,
                    aliases: tuple[str, ...] = (), name: str = "", of: Any = None,
                    private: str = "", switched: bool = False, module: str = "") -> Any:
    """Declare a public function by its body; `namespace` may be several. One that stands in front
    `of` an op with the same name leaves the table to that. `private` is the name of PyTorch's
    function, which Python's own errors cite, where that is another. One is `switched` if an
    argument says how many results there are: it shows no parameters, as PyTorch's, which passes
    all on to one of two functions. It says that it is of `module`, the namespace if that is not
    given; PyTorch writes those of `torch` in `torch.functional`."""
    if body is None:
        return lambda f: python_function(f, namespace=namespace, method=method, aliases=aliases,
                                         name=name, of=of, private=private, switched=switched,
                                         module=module)
    title = name or body.__name__
    resolve_tensors(body)
    if private or not body.__qualname__.startswith("Tensor."):
        body.__name__ = body.__qualname__ = private or title
    spaces: Any = (namespace,) if isinstance(namespace, str) else namespace
    op = Op(title, "composite", composite=True, namespace=namespace, doc=body.__doc__, body=body)
    op.direct = body
    function: Any = PythonFunction(body, op)
    if switched:
        function.__signature__ = ANY_ARGUMENTS
    if native is not None:
        function = update_wrapper(native.make_python_function(function, body), body)
    op.function = op.call = op.published = function
    function.__name__ = function.__qualname__ = title
    space = spaces[0] if spaces else "torch"
    function.__module__ = module_of(module or {"torch": "functional"}.get(space, space))
    if of is None:
        table.declare({f"{spaces[0]}.{title}" if spaces[0] != "torch" else title: lambda: op})
    for space in spaces:
        public.setdefault(space, {}).update(dict.fromkeys((title, *aliases), function))
    if method:
        for each in (title, *aliases):
            setattr(Tensor, each, function)
    return function


def choose_by_flag(flag: str, place: int, without: Any, with_flag: Any, *, namespace: str, name: str
                   ) -> None:
    """Declare a public function that is one of two, as its argument `flag` at that place says."""
    doc, with_flag.__doc__ = with_flag.__doc__, None            # it has the doc of one of them
    from flambeau.dispatch.by_flag import boolean_dispatch

    function = boolean_dispatch(flag, place, False, with_flag, without, module_of(namespace), name)
    with_flag.__doc__ = doc
    without.__name__ = without.__qualname__ = without.op.body.__name__
    without.op.published = function
    public[namespace][name] = function


__all__ = ["PythonFunction", "choose_by_flag", "python_function"]
