"""What PyTorch's functions and methods take, and what it says of a call that fits none of it.

`signatures.txt` (of `tests/data/record_signatures.py`) is read after a call has failed.

>>> complaint("flip", (flambeau.ones(2), "a"), {})
"flip(): argument 'dims' (position 2) must be tuple of ints, not str"
>>> complaint("flip", ("a",), {}, bound=True)
"flip(): argument 'dims' (position 1) must be tuple of ints, not str"
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flambeau import type_info
from flambeau._call_guards import method
from flambeau.core import devices, dtypes, fast
from flambeau.core.op import Op
from flambeau.core.tensor import Tensor

# NumPy's names of arguments, which PyTorch takes too
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input",
               "x2": "other"}
_OPTIONS = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=False, bool? requires_grad=False")
_TITLES = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout",
           "Device": "torch.device", "MemoryFormat": "torch.memory_format", "Dimname": "name",
           "Generator": "torch.Generator", "Storage": "torch.Storage"}
# of these, PyTorch makes tensors of numbers
_NUMBERS_AS_TENSORS = re.compile(
    "(add|sub|subtract|mul|multiply|div|divide|true_divide|floor_divide)_?|copy_?|_conj")


class Parameter(NamedTuple):
    """One argument: its type without brackets and marks, and what those say."""
    name: str
    kind: str
    size: int                   # of a list: how many a single value stands for; -1: no list
    nullable: bool
    default: str | None
    by_name: bool

    @property
    def title(self) -> str:
        """The type as messages name it."""
        title = _TITLES.get(self.kind, self.kind)
        if self.size < 0:
            return title
        return f"tuple of {'Scalar' if title == 'Number' else title}s"


class Signature(NamedTuple):
    """All arguments of one way to call a function."""
    parameters: tuple[Parameter, ...]
    deprecated: bool

    @property
    def places(self) -> int:
        """How many can be given by position."""
        return sum(not p.by_name for p in self.parameters)

    @property
    def required(self) -> int:
        """How many must be given."""
        return sum(p.default is None for p in self.parameters)

    def __str__(self) -> str:
        parts = [f"{p.title} {p.name}" + (f" = {p.default}" if p.default is not None else "")
                 for p in self.parameters]
        if self.places < len(parts):
            parts.insert(self.places, "*")
        return f"({', '.join(parts)})"


@cache
def _texts() -> tuple[frozenset[str], frozenset[str], dict[str, list[str]]]:
    """Methods that take nothing, functions of layers that check, the signatures of each name."""
    bare, layers, *lines = Path(__file__).with_name("signatures.txt").read_text().splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, rest = line.partition("(")
        found.setdefault(name, []).append(rest)
    return frozenset(bare.split()), frozenset(layers.split()), found


def _of_method(text: str) -> str:
    """The signature of a method that is the function without its input and `out`."""
    text = re.sub(r"Tensor input(, )?", "", text, count=1)
    return re.sub(r"(, )?(\*, )?Tensor(\[\d\])? out=None", "", text)


def is_bare(name: str) -> bool:
    """Does the method of this name take no arguments at all?"""
    return name in _texts()[0]


def checks(name: str) -> bool:
    """Does this function of `nn.functional` check its arguments by a signature?"""
    return name in _texts()[1]


@cache
def signatures(name: str) -> tuple[Signature, ...]:
    """Those of a function, or of `.name`, a method."""
    texts, both = _texts()[2], name.removeprefix(".") + ":"
    found = texts.get(name) or texts.get(both, [])
    if name.startswith(".") and name not in texts:
        found = [*map(_of_method, found)]
    return tuple([_parsed(text) for text in found])


def is_known(name: str, bound: bool) -> bool:
    """Are there signatures of the function, or of the method?"""
    return bool(signatures(f".{name}" if bound else name))


def names(name: str) -> set[str]:
    """The names of all arguments of a function."""
    return {p.name for signature in signatures(name) for p in signature.parameters}


def most(name: str) -> int:
    """How many arguments a function takes by position."""
    return max((signature.places for signature in signatures(name)), default=0)


def _parsed(text: str) -> Signature:
    inside, _, mark = text.rpartition(")")
    parameters, by_name = [], False
    for part in re.split(r", (?![^\[]*\])", inside.replace("OPTIONS", _OPTIONS)):
        if part == "*":
            by_name = True
        elif part:
            kind, _, rest = part.partition(" ")
            name, equals, default = rest.partition("=")
            stem, bracket, size = kind.removesuffix("?").partition("[")
            parameters.append(Parameter(name, stem, int(size[:-1] or 0) if bracket else -1,
                                        kind.endswith("?") or default == "None",
                                        default if equals else None, by_name))
    return Signature(tuple(parameters), mark != "")


# ---- does a value fit? ---------------------------------------------------------------------------

def _is_scalar_tensor(value: Any) -> bool:          # asks no method that a subclass overrides
    return isinstance(value, Tensor) and value._array.ndim == 0 and value._edge is None


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return _is_scalar_tensor(value) and value._array.dtype.kind in "iu"
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_, np.ndarray))


def _is_index(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iub"
    return _is_int(value)


def _is_float(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) or _is_scalar_tensor(
        value) or hasattr(value, "__sym_float__")


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "Storage": lambda value: "Storage" in type(value).__name__,
    "int": _is_int,
    "float": _is_float,
    "Scalar": lambda value: isinstance(value, complex) or _is_float(value),
    "bool": lambda value: isinstance(value, (bool, np.bool_)) or hasattr(value, "__sym_not__"),
    "str": lambda value: isinstance(value, str),
    "Dimname": lambda value: isinstance(value, str) or value is None,
    "ScalarType": lambda value: isinstance(value, dtypes.dtype) or value in (int, float, bool,
                                                                             complex),
    "Device": lambda value: isinstance(value, (devices.device, str)) or (
        _is_int(value) and not isinstance(value, Tensor)),
    "Layout": lambda value: isinstance(value, type_info.layout),
    "MemoryFormat": lambda value: isinstance(value, type_info.memory_format),
}


def _is(kind: str, value: Any) -> bool:
    return kind not in _CHECKS or _CHECKS[kind](value)


class Misfit(TypeError):
    """An argument for which no signature is tried any more."""


def _fits(parameter: Parameter, value: Any, numbers: bool, place: int) -> bool:
    kind = parameter.kind
    if parameter.size < 0:
        return _is(kind, value) or (numbers and kind == "Tensor" and _is("Scalar", value)
                                    and not isinstance(value, Tensor))
    if not isinstance(value, (tuple, list)):
        return parameter.size > 0 and (_is_index(value) if kind == "int" else
                                       kind == "float" and _is(kind, value))
    if kind == "Tensor":
        for i, item in enumerate(value):
            if not isinstance(item, Tensor) and not (item is None and parameter.name == "indices"):
                raise Misfit(f"expected Tensor as element {i} in argument {place}, but got "
                             f"{type_name(item)}")
    if kind == "float" and value and isinstance(value[0], Tensor):
        return False
    return not value or (_is_index(value[0]) if kind == "int" else _is(kind, value[0]))


def type_name(value: Any) -> str:
    """The name of a value's type as PyTorch's messages have it."""
    cls = type(value)
    if cls is Tensor:
        return "Tensor"
    if cls.__module__.partition(".")[0] in ("flambeau", "torch") and not isinstance(value, Tensor):
        return {"Generator": "torch._C.Generator"}.get(cls.__name__, f"torch.{cls.__name__}")
    made_in_c = not cls.__flags__ & 1 << 9                  # those have the module in their name
    return f"{cls.__module__}.{cls.__name__}" if made_in_c and cls.__module__ != "builtins" \
        else cls.__name__


# ---- does a call? --------------------------------------------------------------------------------

def _wrong(signature: Signature, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why a call does not fit the signature; nothing if it does."""
    parameters, places, count = signature.parameters, signature.places, len(args)
    several = places == 1 and parameters[0].kind == "int" and parameters[0].size >= 0 and (
        count < 2 or _is_index(args[0]))
    if count > places and not several:
        return _too_many(signature, name, count)
    numbers, used, place, unpacked = bool(_NUMBERS_AS_TENSORS.fullmatch(name)), 0, 0, ""
    for i, parameter in enumerate(parameters):
        positional = place < count
        if positional and parameter.by_name:
            return _too_many(signature, name, count)
        spelled = parameter.name if positional else _spelling(parameter.name, kwargs)
        if spelled is None:
            if parameter.default is None:
                return _missing(signature, name, i)
            continue
        value = args[place] if positional else kwargs[spelled]
        used += not positional
        place += positional
        if value is None and parameter.nullable:
            continue
        if not _fits(parameter, value, numbers, i):
            if not (several and place == 1 and positional and _is_index(value)):
                return f"{name}(): {_not_that(parameter, value, place if positional else 0)}"
            value, place = args, count
        if parameter.kind == "int" and isinstance(value, (tuple, list)):
            bad = next((j for j, item in enumerate(value)
                        if not (_is_index(item) or (j and isinstance(item, bool)))), None)
            if bad is not None and not unpacked:
                unpacked = (f"{name}(): argument '{parameter.name}' failed to unpack the object "
                            f"at pos {bad + 1} with error \"type must be tuple of ints,but got "
                            f'{type_name(value[bad])}"')
    if used < len(kwargs):
        return _unknown(signature, name, kwargs, count)
    return unpacked


def _spelling(name: str, kwargs: dict[str, Any]) -> str | None:
    if name in kwargs:
        return name
    return next((other for other, one in NUMPY_NAMES.items() if one == name and other in kwargs),
                None)


def _not_that(parameter: Parameter, value: Any, place: int) -> str:
    where = f" (position {place})" if place else ""
    found = f"not {type_name(value)}"
    if place and parameter.size >= 0 and isinstance(value, (tuple, list)):
        found = f"but found element of type {type_name(value[0])} at pos 0"
    return f"argument '{parameter.name}'{where} must be {parameter.title}, {found}"


def _too_many(signature: Signature, name: str, count: int) -> str:
    places, required = signature.places, signature.required
    if required != places:
        return (f"{name}() takes from {required} to {places} positional arguments but {count} were "
                "given")
    return (f"{name}() takes {places} positional argument{'' if places == 1 else 's'} but {count} "
            f"{'was' if count == 1 else 'were'} given")


def _missing(signature: Signature, name: str, first: int) -> str:
    names = [f'"{p.name}"' for p in signature.parameters[first:] if p.default is None]
    return (f"{name}() missing {len(names)} required positional argument"
            f"{'s' if len(names) == 1 else ''}: {', '.join(names)}")        # so PyTorch has it


def _unknown(signature: Signature, name: str, kwargs: dict[str, Any], count: int) -> str:
    names = [p.name for p in signature.parameters]
    for key in kwargs:
        if NUMPY_NAMES.get(key, key) not in names and key not in names:
            return f"{name}() got an unexpected keyword argument '{key}'"
        if key in names[:count]:
            return f"{name}() got multiple values for argument '{key}'"
    return f"{name}() got invalid keyword arguments"


def worded(function: Any, bound: bool = True, name: str = "", space: str = "torch") -> Any:
    """`function`, which is no op, with the check of arguments and the words that an op has."""
    function.__name__ = function.__qualname__ = name or function.__name__
    op = Op(function.__name__, "method" if bound else "function", composite=True,
            namespace=space, body=function, function=function)
    checked = fast.callable_of("closure", op, function)
    if not bound:
        return checked
    made = method(checked)
    made.is_member = True               # modes and subclasses see it as they see a property
    return made


def complaint(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
              ) -> str:
    """What PyTorch says of the arguments of a function, or of a method (without the tensor whose
    it is); nothing if they fit, or if the signatures are not known."""
    if bound and is_bare(name):
        if kwargs:
            return f"TensorBase.{name}() takes no keyword arguments"
        return f"TensorBase.{name}() takes no arguments ({len(args)} given)" if args else ""
    known, wrong = signatures(f".{name}" if bound else name), []
    for signature in known:
        try:
            wrong.append(_wrong(signature, name, args, kwargs))
        except Misfit as error:
            return str(error)
        if not wrong[-1] or "failed to unpack" in wrong[-1]:
            return wrong[-1]
    if not known:
        return ""
    shown = [s for s in known if not s.deprecated]
    count = len(args) + len(kwargs)
    likely = [s for s in shown if s.required <= count <= len(s.parameters)]
    if len(known) == 1 or len(likely) == 1:
        return wrong[known.index((likely or known)[0])]
    return (f"{name}() received an invalid combination of arguments - "
            f"{_listing(shown, args, kwargs)}")


def numbered(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
             ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call that fits, with Python's numbers for NumPy's and for tensors of one
    number where the signature wants those; None if there are none."""
    for signature in signatures(f".{name}" if bound else name):
        if _wrong(signature, name, args, kwargs):
            continue
        kinds = {p.name: p.kind for p in signature.parameters}
        order = [p.kind for p in signature.parameters] + ["int"] * len(args)
        new = tuple([_number_for(kind, value) for kind, value in zip(order, args)])
        named = {key: _number_for(kinds.get(NUMPY_NAMES.get(key, key), ""), value)
                 for key, value in kwargs.items()}
        same = all(a is b for a, b in zip((*args, *kwargs.values()), (*new, *named.values())))
        return None if same else (new, named)
    return None


def _number_for(kind: str, value: Any) -> Any:
    if kind not in ("int", "float", "Scalar"):
        return value
    if isinstance(value, (Tensor, np.generic)):
        return value.item()
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, np.generic))
                                                for v in value):
        return [_number_for(kind, v) for v in value]
    return value


def _listing(shown: list[Signature], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [f"{key}={type_name(value)}" for key, value in reversed(kwargs.items())]
    got = f"({', '.join([*map(type_name, args), *named, *(() if args or not named else ('',))])})"
    if len(shown) > 1:
        return f"got {got}, but expected one of:" + "".join([f"\n * {s}" for s in shown]) + "\n"
    unknown = [key for key in reversed(kwargs)
               if key not in [p.name for p in shown[0].parameters[len(args):]]]
    if unknown:
        return f"got unrecognized keyword arguments: {', '.join(unknown)}"
    return f"got {got}, but expected {shown[0]}"
