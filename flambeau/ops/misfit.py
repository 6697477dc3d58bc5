"""What PyTorch says about a call whose arguments fit no signature.

Asked before the first call of a function with arguments of some types, and after any call that has
failed, whatever it failed with: a call like the one before it checks nothing but that.
"""
from __future__ import annotations

import math
import re
import sys
from inspect import CO_VARARGS, signature, unwrap
from typing import Any

from flambeau._support.source_locations import PACKAGE
from flambeau.core import overrides
from flambeau.core.op import Op, public
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor, alias
from flambeau.ops.coercion import SPELLINGS
from flambeau.ops.forwarding import RULES
from flambeau.schema.errors import type_name
from flambeau.schema.recorded import (
    complaint,
    is_known,
    is_layer_function,
    most,
    names,
    numbered,
    takes_nothing,
)

_PREFIXED = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with
_GUARDS = f"{PACKAGE}_call_guards.py"
_INNER = tuple([f"{PACKAGE}{part}" for part in ("core", "ops", "transforms", "kernels")])


def _spaces(op: Op) -> tuple[str, ...]:
    return (op.namespace,) if isinstance(op.namespace, str) else op.namespace or ("torch",)


def c_name(op: Op) -> str:
    """The name of PyTorch's C++ function: `linalg_det`."""
    space = _spaces(op)[0]
    return f"{space}_{op.name}" if space in _PREFIXED else op.name


def misfit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
           ) -> TypeError | None:
    """The error of a call whose arguments fit no signature; None if they fit one, or if the
    signatures of the op are not known."""
    spaces = _spaces(op)
    inner = _handed_on(op, args, kwargs)
    if inner is not None:
        owner = "Tensor." if bound and op.name in _METHODS_OF_PYTHON else ""
        said = owner + inner if isinstance(inner, str) else _said_of(*inner)
        return TypeError(said) if said else None
    if rule_of(op) and spaces[0] != "nn.functional":
        return None
    if not {"torch", *_PREFIXED} & {*spaces} and not (
            "nn.functional" in spaces and is_layer_function(op.name)):
        return None                             # other functions of Python, by other names
    if "nn.functional" in spaces and not bound and not is_layer_function(op.name) and (
            not {*kwargs} <= names(op.name) or len(args) > most(op.name)):
        return None                             # of the layers' function of the same name
    name, bound = c_name(op), (bound or op.kind == "method") and _has_method(op)
    if not is_known(name, False) and is_known(name, True) and isinstance(next(iter(args), None),
                                                                         Tensor):
        bound = True                            # there is only the method
    ours = args[1:] if bound else args
    said = complaint(name, ours, kwargs, bound)
    if said and (any(is_known(other, bound) and not complaint(other, ours, kwargs, bound)
                     for other in _aliases(op)) or (not hasattr(op.published, "takes_more")
                     and _as_method(name, args, kwargs, bound))):
        return None
    return TypeError(said) if said else None


def rule_of(op: Op) -> Any:
    """What the op hands on to an inner function, if PyTorch's is written in Python."""
    space = _spaces(op)[0]
    return RULES.get(op.name if space == "torch" else f"{space}.{op.name}")


def _handed_on(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of an inner function that a call leads to; None if none does."""
    rule = rule_of(op)
    if rule is None:
        return None
    if kwargs:
        known = signature(rule).parameters
        kwargs = {key if key in known or SPELLINGS.get(key) not in known else SPELLINGS[key]: value
                  for key, value in kwargs.items()}
    try:
        inner = rule(*args, **kwargs)
    except Exception:                           # of Python's part
        return _unbound(op, rule, args, kwargs)
    name = None if inner is None else inner[0]
    return inner if name and is_known(name.removeprefix("."), name[0] == ".") else None


def _unbound(op: Op, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What Python says of a call that does not fit the parameters of the function."""
    if len(_spaces(op)) == 1 and kwargs:
        unknown = [key for key in kwargs if key not in signature(rule).parameters]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature(rule).parameters.values())
        if unknown and not takes_any:
            return f"{op.name}() got an unexpected keyword argument '{unknown[0]}'"
    return None


def _said_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The `complaint` about an inner function, or about `.name`, an inner method."""
    bound = name[0] == "."
    return complaint(name[bound:], args[bound:], kwargs, bound)


def _aliases(op: Op) -> list[str]:
    return [name for name, function in public["torch"].items()
            if name != op.name and getattr(function, "op", None) is op]


def _has_method(op: Op) -> bool:
    """Does the method have a parser of its own, and not only the function that it calls?"""
    return is_known(op.name, True) or takes_nothing(op.name) or not is_known(c_name(op), False)


def _as_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> bool:
    """Does a call of the function fit as one of the method, taken from the class?"""
    return not bound and is_known(name, True) and isinstance(next(iter(args), None), Tensor) \
        and not complaint(name, args[1:], kwargs, True)


def _called_by_ops() -> bool:
    """Was the public function called by one of ours, and not by a user?"""
    frame: Any = sys._getframe(2)
    if frame.f_code.co_filename == _GUARDS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_INNER)


def _of_overriding_types(args: Any, kwargs: dict[str, Any]) -> bool:
    """Are there arguments, or elements of them, whose types override functions? To ask for those
    that do (`overrides.overriding`) is for the call itself: a redispatch answers it once."""
    for value in (*args, *kwargs.values()):
        elements = value if type(value) in (list, tuple) else (value,)
        if any(overrides.overrides(type(each)) for each in elements):
            return True
    return False


def _kinds(args: tuple[Any, ...], kwargs: dict[str, Any], places: tuple[Any, ...]) -> Any:
    """What decides whether the tensors at `places` are numbers."""
    given = [args[place] if type(place) is int else kwargs[place] for place in places]
    return tuple([(x._array.dtype, x._array.shape, x.requires_grad) for x in given
                  if isinstance(x, Tensor)])


_lenient: set[Any] = set()
# by the types of a call: where tensors stood for numbers, and of which kinds they were
_numbers: dict[Any, tuple[tuple[Any, ...], set[Any]]] = {}


def admit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> bool | TypeError:
    """Before the first call with arguments of these types: do they fit, from now on? An error if
    not; but calls by our own ops may take liberties, and whether a tensor is a number its type
    does not say."""
    key = (op, bound, *map(type, args), *kwargs, *map(type, kwargs.values()))
    inner = _called_by_ops()
    if inner and key in _lenient:
        return False
    if _of_overriding_types(args, kwargs):      # it is theirs to say what fits
        return False
    numbers = _numbers.get(key)
    if numbers is not None and _kinds(args, kwargs, numbers[0]) in numbers[1]:
        return False
    better = misfit(op, args, kwargs, bound)
    if better is None:
        if sum(issubclass(cls, Tensor) for cls in key[2:] if isinstance(cls, type)) < 2:
            return True
        again = _in_numbers(op, args, kwargs, bound)
        if again is None:
            return True
        places = (*[i for i, (a, b) in enumerate(zip(args, again[0])) if a is not b],
                  *[name for name in kwargs if kwargs[name] is not again[1][name]])
        if _numbers.setdefault(key, (places, set()))[0] == places:
            _numbers[key][1].add(_kinds(args, kwargs, places))
        return False
    if inner:
        _lenient.add(key)
    return False if inner else better


def explain(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool, error: Exception
            ) -> Exception | tuple[Any] | None:
    """What to raise in place of the `error` of a call; None if it is right as it is. In a tuple the
    result, if the call only had to be put in other terms."""
    if isinstance(error, (MemoryError, ValueError)):
        found = too_large(args, error)
        if found is not None:
            return found
    inner = _called_by_ops()
    if (inner and not isinstance(error, (TypeError, AttributeError))) \
            or overrides.overriding(args, kwargs):
        return None
    better = misfit(op, args, kwargs, bound)
    if better is not None or inner:
        return better
    if bound and op.name in _METHODS_OF_PYTHON and str(error).startswith(f"{op.name}() "):
        return TypeError(f"Tensor.{error}")
    again = _in_numbers(op, args, kwargs, bound)
    if again is not None:
        function = op.published or getattr(Tensor, op.name, op.function)
        return (function(*again[0], **again[1]),)
    if isinstance(error, (TypeError, AttributeError)):
        found = _not_tensors(op, args)
        if found is None and " attribute '_" in str(error):         # one of ours
            found = _not_tensor(op, args, kwargs)
        if found is not None:
            return found
        if "<locals>" in str(error):
            return TypeError(_LOCAL.sub(f"{op.name}()", str(error)))
    if isinstance(error, ValueError) and "broadcast" in str(error):
        return _unequal(args, kwargs) or RuntimeError(str(error))
    return None


def too_large(args: tuple[Any, ...], error: Exception) -> Exception | None:
    """For NumPy's error about memory that there is not, or that no number of bytes can say."""
    if isinstance(error, MemoryError):
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        if shape is None or dtype is None:
            return None
        return RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: "
                            "can't allocate memory: you tried to allocate "
                            f"{math.prod(shape) * dtype.itemsize} bytes. Error code 12 (Cannot "
                            "allocate memory)")
    if not str(error).startswith(("array is too big", "Maximum allowed dimension exceeded",
                                  "maximum supported dimension")):
        return None
    sizes = [n for arg in args for n in (arg if isinstance(arg, (tuple, list)) else (arg,))
             if isinstance(n, int) and not isinstance(n, bool)]
    viewed = [arg._array.size for arg in args if isinstance(arg, Tensor)]
    if not viewed and 0 in sizes:
        return RuntimeError("Stride calculation overflowed")
    extents = [n for n in sizes if n > 0] + viewed * (-1 in sizes)
    if not sizes or (viewed and math.prod(extents) >= 2 ** 63):
        return RuntimeError("numel: integer multiplication overflow")
    return RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")




def _in_numbers(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> Any:
    """The arguments of a call with Python's numbers for tensors and NumPy's; None if there are
    none."""
    places = _apart(args, kwargs)
    inner = _handed_on(op, *places)
    if isinstance(inner, tuple):
        return _numbered_within(inner, args, kwargs, *places)
    if rule_of(op):
        return None
    bound = (bound or op.kind == "method") and _has_method(op)
    again = numbered(c_name(op), args[bound:], kwargs, bound)
    return None if again is None else ((*args[:bound], *again[0]), again[1])


def _apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments with another tensor of the same values for one that was given before: what is
    handed on is known again by its identity."""
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, Tensor) or id(value) not in seen:
            seen.add(id(value))
            return value
        return alias(value._array, type(value))
    return tuple([own(value) for value in args]), {key: own(v) for key, v in kwargs.items()}


def _numbered_within(inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                     places: tuple[Any, ...], named_places: dict[str, Any]) -> Any:
    """`numbered` of the arguments that are handed on to an inner function, in `places` apart."""
    changed = None if inner[0][0] == "." else numbered(*inner)
    if changed is None:
        return None
    before, after = [(*values, *named.values()) for values, named in (inner[1:], changed)]
    new = {id(old): value for old, value in zip(before, after) if old is not value}
    return (tuple([new.get(id(own), value) for value, own in zip(args, places)]),
            {key: new.get(id(named_places[key]), value) for key, value in kwargs.items()})


# Methods whose parameters Python checks; it says whose they are.
_METHODS_OF_PYTHON = frozenset("""norm split stft istft unflatten unique unique_consecutive lu
    align_to refine_names rename rename_""".split())
_LOCAL = re.compile(r"^[\w.<>]+\.<locals>\.\w+\(\)")


def _not_tensors(op: Op, args: tuple[Any, ...]) -> TypeError | None:
    """The error of a function `f(*tensors)` that got something else."""
    body = (op.functional if op.inplace else op).body if op.composite else None
    code = getattr(unwrap(body), "__code__", None) if body is not None else None
    if code is None or not code.co_flags & CO_VARARGS or code.co_argcount \
            or code.co_varnames[code.co_kwonlyargcount] != "tensors":
        return None
    tensors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    for i, value in enumerate(tensors):
        if not isinstance(value, Tensor):
            return TypeError(f"expected Tensor as element {i} in argument 0, but got "
                             f"{type_name(value)}")
    return None


def _not_tensor(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """The error of a function one of whose tensors is none."""
    if not op.composite:
        return None if not args or isinstance(args[0], Tensor) else TypeError(
            f"{c_name(op)}(): argument 'input' (position 1) must be Tensor, not "
            f"{type_name(args[0])}")
    declared = signature((op.functional if op.inplace else op).body)
    try:
        given = declared.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for place, (name, value) in enumerate(given.items(), 1):
        if declared.parameters[name].annotation == "Tensor" and not isinstance(value, Tensor):
            return TypeError(f"{c_name(op)}(): argument '{name}' (position {place}) must be "
                             f"Tensor, not {type_name(value)}")
    return None


def _unequal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Why the tensors of a call don't broadcast."""
    try:
        broadcast_shapes(*[tuple(value.shape) for value in (*args, *kwargs.values())
                           if isinstance(value, Tensor)])
    except RuntimeError as error:
        return error
    return None


