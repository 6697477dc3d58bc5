"""The signatures of PyTorch's functions and methods that no declaration states yet.

`signatures.txt` holds them (written by `tests/data/record_signatures.py`); its first line names
the methods that take nothing, its second the functions of `nn.functional` that have a parser of
their own. Then `name(...)` is a signature of a function, `name:(...)` of a function and, without
the input and `out`, of a method, `.name(...)` of a method.

>>> [str(s) for s in signatures("_neg_view")]
['(Tensor input)']
>>> complaint("_neg_view", ("a",), {})
"_neg_view(): argument 'input' (position 1) must be Tensor, not str"
"""
from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from flambeau.schema import errors
from flambeau.schema.arguments import NUMPY_NAMES, Wrong, bind
from flambeau.schema.parser import parse
from flambeau.schema.signature import Signature

_OPTIONS = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=False, bool? requires_grad=False")
# of numbers given to these, PyTorch makes tensors
_NUMBERS_AS_TENSORS = re.compile(
    "(add|sub|subtract|mul|multiply|div|divide|true_divide|floor_divide)_?|copy_?|_conj")


@cache
def _texts() -> tuple[frozenset[str], frozenset[str], dict[str, list[str]]]:
    with open(os.path.join(os.path.dirname(__file__), "signatures.txt"), encoding="utf-8") as file:
        bare, layers, *lines = file.read().splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.partition("(")[0], []).append(line)
    return frozenset(bare.split()), frozenset(layers.split()), found


def _of_method(text: str) -> str:
    """The signature of a method that is the function without its input and `out`."""
    text = re.sub(r"Tensor input(, )?", "", text, count=1)
    return re.sub(r"(, )?(\*, )?Tensor(\[\d\])? out=None", "", text)


def _parsed(text: str) -> Signature:
    call, _, mark = text.replace("OPTIONS", _OPTIONS).rpartition(")")
    schema = parse(f"{call})")
    parameters = tuple([p._replace(nullable_items=p.name == "indices") if p.kind == "Tensor"
                        and p.is_list else p for p in schema.parameters])
    return Signature(parameters, schema, mark != "")


def takes_nothing(name: str) -> bool:
    """Does the method of this name take no arguments at all?"""
    return name in _texts()[0]


def is_layer_function(name: str) -> bool:
    """Does this function of `nn.functional` check its arguments by a signature?"""
    return name in _texts()[1]


@cache
def signatures(name: str) -> tuple[Signature, ...]:
    """Those of a function, or of `.name`, a method, in the order in which they are tried."""
    texts, both = _texts()[2], name.removeprefix(".") + ":"
    found = texts.get(name) or texts.get(both, [])
    if name.startswith(".") and name not in texts:
        found = [*map(_of_method, found)]
    return tuple([_parsed(text) for text in found])


def is_known(name: str, bound: bool) -> bool:
    """Are there signatures of the function, or of the method?"""
    return bool(signatures(f".{name}" if bound else name))


def complaint(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
              ) -> str:
    """What PyTorch says of the arguments of a function, or of a method (without the tensor whose
    it is); nothing if they fit, or if the signatures are not known."""
    if bound and takes_nothing(name):
        return errors.takes_nothing(name, args, kwargs) if args or kwargs else ""
    known = signatures(f".{name}" if bound else name)
    if not known:
        return ""
    found = choose(known, name, args, kwargs)
    return found if isinstance(found, str) else ""


def choose(known: tuple[Signature, ...], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
           ) -> tuple[Signature, list[Any]] | str:
    """The first signature that a call fits, and its values; else what is to be said of the call."""
    as_tensors, wrong = bool(_NUMBERS_AS_TENSORS.fullmatch(name)), []
    for signature in known:
        try:
            values = bind(signature, name, args, kwargs, numbers_as_tensors=as_tensors)
        except Wrong as error:
            return str(error)
        if not isinstance(values, str):
            return signature, values
        if "failed to unpack" in values:
            return values
        wrong.append(values)
    return errors.fits_none(name, known, wrong, args, kwargs)


def numbered(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
             ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call that fits, with Python's numbers for NumPy's and for tensors of one
    number where the signature wants those; None if there are none."""
    known = signatures(f".{name}" if bound else name)
    found = choose(known, name, args, kwargs) if known else ""
    if isinstance(found, str):
        return None
    parameters = found[0].parameters
    kinds = {n: p.kind for p in parameters for n in (p.name, *NUMPY_NAMES.get(p.name, ()))}
    order = [p.kind for p in parameters] + ["int"] * len(args)
    new = tuple([_number(kind, value) for kind, value in zip(order, args)])
    named = {key: _number(kinds.get(key, ""), value) for key, value in kwargs.items()}
    same = all(a is b for a, b in zip((*args, *kwargs.values()), (*new, *named.values())))
    return None if same else (new, named)


def _number(kind: str, value: Any) -> Any:
    """Python's number for a value, if the signature wants one there."""
    import numpy as np

    from flambeau.core.tensor import Tensor
    if kind not in ("int", "float", "Scalar"):
        return value
    if isinstance(value, (Tensor, np.generic)):
        return value.item()
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, np.generic)) for v in value):
        return [_number(kind, v) for v in value]
    return value


def names(name: str) -> set[str]:
    """The names of all arguments of a function."""
    return {p.name for signature in signatures(name) for p in signature.parameters}


def most(name: str) -> int:
    """How many arguments a function takes by position."""
    return max((signature.positions for signature in signatures(name)), default=0)
