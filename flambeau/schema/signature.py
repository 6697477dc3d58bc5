"""What Python sees of a schema, and in which order overloads are tried.

A function calls the tensor `self` of a schema `input`; a method has it before the dot. An overload
with an `out=` form takes `out` by name, and one that makes a tensor ends with the usual options.

>>> cummax = parse("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
>>> str(function_signature(cummax)), str(method_signature(cummax))
('(Tensor input, int dim)', '(int dim)')
"""
from __future__ import annotations

import inspect
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any, NamedTuple

from flambeau.schema.parser import Parameter, Schema, parse

# NumPy's names of arguments, which PyTorch takes too
NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"),
               "other": ("x2",)}

_OPTION_NAMES = frozenset({"dtype", "layout", "device", "pin_memory"})
OPTIONS = (Parameter("dtype", "ScalarType", nullable=True, default="None", by_name=True),
           Parameter("layout", "Layout", nullable=True, default="None", by_name=True),
           Parameter("device", "Device", nullable=True, default="None", by_name=True),
           Parameter("pin_memory", "bool", nullable=True, default="False", by_name=True),
           Parameter("requires_grad", "bool", nullable=True, default="False", by_name=True))

# PyTorch's names of types in its messages, where they are not those of the schema
_TITLES = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout",
           "Device": "torch.device", "MemoryFormat": "torch.memory_format", "Dimname": "name",
           "Generator": "torch.Generator", "Storage": "torch.Storage"}


def title(parameter: Parameter) -> str:
    """The type of a parameter as messages name it."""
    name = _TITLES.get(parameter.kind, parameter.kind)
    if not parameter.is_list:
        return name
    return f"tuple of {'Scalar' if name == 'Number' else name}s"


def _format_default(default: str) -> str:
    """A default as messages have it: spelled as in C++."""
    if default[0] == "[":
        return f"{{{default[1:-1]}}}" if len(default) > 2 else "None"
    if default[0] == "'":
        return f'"{default[1:-1]}"'
    return "at::Reduction::Mean" if default == "Mean" else default


class Signature(NamedTuple):
    """One way to call a function (or a method, without the tensor before the dot)."""
    parameters: tuple[Parameter, ...]
    schema: Schema
    is_deprecated: bool = False

    @property
    def positions(self) -> int:
        """How many arguments can be given by position."""
        return [p.by_name for p in self.parameters].count(False)

    @property
    def required(self) -> int:
        """How many arguments must be given."""
        return sum(p.default is None for p in self.parameters)

    @property
    def takes_numbers_one_by_one(self) -> bool:
        """Is its only positional argument a list of integers: `x.view(2, 3)`?"""
        first = self.parameters[0] if self.parameters else None
        return self.positions == 1 and first is not None and first.kind == "int" and first.is_list

    def __str__(self) -> str:
        parts = [f"{title(p)} {p.name}" + (f" = {_format_default(p.default)}" if p.default else "")
                 for p in self.parameters]
        if self.positions < len(parts):
            parts.insert(self.positions, "*")
        return f"({', '.join(parts)})"


def function_signature(schema: Schema, out: Schema | None = None) -> Signature:
    """What the function takes; `out` is the schema of the `out=` form, if there is one."""
    own = [p._replace(name="input") if p.name == "self" and p.is_tensor and not p.is_list else p
           for p in _given(schema)]
    tail = [*OPTIONS] if schema.is_factory else []
    if out is not None:
        n = len(out.outs)
        size = out.outs[0].size if n == 1 else n
        tail.insert(0, Parameter("out", "Tensor", size, True, "None", True, "a", True))
    return Signature(_ordered_by_place(own, tail), schema)


def method_signature(schema: Schema) -> Signature:
    """What the method takes after the dot."""
    own = _given(schema)
    index = next((i for i, p in enumerate(own) if p.name == "self"), 0)
    return Signature(_ordered_by_place(own[:index] + own[index + 1:],
                                       [*OPTIONS] if schema.is_factory else []), schema)


def _given(schema: Schema) -> list[Parameter]:
    """The parameters that are not where results go, and no options."""
    own = [p for p in schema.parameters if not p.is_out]
    return [p for p in own if p.name not in _OPTION_NAMES] if schema.is_factory else own


def _ordered_by_place(own: list[Parameter], tail: list[Parameter]) -> tuple[Parameter, ...]:
    return (*[p for p in own if not p.by_name], *[p for p in own if p.by_name], *tail)


# ---- for `inspect` -------------------------------------------------------------------------------

_ANNOTATIONS = {"Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str"}


def annotation(p: Parameter) -> str:
    """The type of a parameter in Python."""
    text = _ANNOTATIONS.get(p.kind, "Any")
    if p.is_list:
        text = "Sequence[Tensor]" if text == "Tensor" and not p.nullable_items else "Any"
    return f"{text} | None" if p.nullable and text != "Any" else text


def python_signature(overloads: Sequence[Sequence[Parameter]], result: str,
                     one_by_one: bool = False, numbers: bool = False) -> inspect.Signature:
    """One signature for all overloads: the parameters of the longest, of which those that another
    overload does without may be left out. Are the numbers of its list given `one_by_one`? Do
    `numbers` stand for tensors?"""
    places = {p.name: i for o in overloads for i, p in enumerate(o) if not p.by_name}
    names = [p.name for o in overloads for p in o]
    longest = max(overloads, key=lambda o: (len(o), one_by_one and any(
        p.is_list and names.count(p.name) == 1 for p in o)))
    taken = {p.name for p in longest}
    named = {p.name: p._replace(by_name=True) for o in overloads for p in o
             if (p.by_name or one_by_one) and p.name not in taken}      # `view(dtype=…)`
    places = {name: i for name, i in places.items() if name not in named}
    every = [p._replace(by_name=p.name not in places) for p in (*longest, *named.values())]
    longest = sorted(every, key=lambda p: places.get(p.name, len(places)))
    always = set.intersection(*[{p.name for p in overload} for overload in overloads])
    made: list[inspect.Parameter] = []
    kinds = inspect.Parameter
    positional = [p.name for p in longest if not p.by_name]
    for p in longest:
        default = p.value if p.default is not None else \
            kinds.empty if p.name in always else None
        kind: Any = kinds.KEYWORD_ONLY if p.by_name else kinds.POSITIONAL_OR_KEYWORD
        if default is kinds.empty and kind is kinds.POSITIONAL_OR_KEYWORD and made \
                and made[-1].default is not kinds.empty:
            default = None                          # `end` after a `start` that may be left out
        if one_by_one and p.is_list and p.name == positional[-1]:
            kind, default = kinds.VAR_POSITIONAL, kinds.empty
        optional = p._replace(nullable=p.nullable or default is None)
        same = len({(q.kind, q.is_list) for o in overloads for i, q in enumerate(o)
                    if p.name == q.name or (not q.by_name and i == places.get(p.name))}) == 1
        mixed = not same or (numbers and p.kind == "Tensor" and not p.by_name)
        name = f"{p.name}_" if iskeyword(p.name) else p.name    # `from`, which Python can't show
        made.append(kinds(name, kind, default=default,
                          annotation="Any" if mixed else annotation(optional)))
    return inspect.Signature(made, return_annotation=result)


# ---- the order of overloads ----------------------------------------------------------------------

_MORE_SPECIAL = {("Scalar", "Tensor"), ("Scalar?", "Tensor?"), ("int[]", "int"), ("int[]", "int?"),
                 ("int", "Tensor")}


def in_order(signatures: Sequence[Signature]) -> list[Signature]:
    """Overloads as PyTorch tries them: a tensor before the number that could stand for it, an
    integer before a list of them; else by their spelling in C++. Those that take any object are
    not made from schemas, and stand in their order."""
    if any(p.kind == "object" for s in signatures for p in s.parameters):
        return [*signatures]
    found = sorted(signatures, key=_spelling)
    waits: dict[int, set[int]] = {}
    for i, one in enumerate(found):
        for j, other in enumerate(found):
            if _comes_after(one, other):
                waits.setdefault(i, set()).add(j)
    order = [i for i in range(len(found)) if i not in waits]
    for done in order:                                  # grows while we look at it
        for i in sorted(waits):
            waits[i].discard(done)
            if not waits[i]:
                del waits[i]
                order.append(i)
    return [found[i] for i in order]


def _comes_after(one: Signature, other: Signature) -> bool:
    a, b = ([p for p in s.parameters if p.name != "out"] for s in (one, other))
    if len(a) != len(b):
        return False
    same = [_full_type(p) == _full_type(q) for p, q in zip(a, b)]
    return not all(same) and all(e or _is_more_special(_full_type(p), _full_type(q))
                                 for e, p, q in zip(same, a, b))


def _full_type(p: Parameter) -> str:
    return p.kind + "[]" * p.is_list + "?" * p.nullable


def _is_more_special(a: str, b: str) -> bool:
    return (a, b) in _MORE_SPECIAL or (a == "Tensor[]" != b and "[]" in b)


def _spelling(signature: Signature) -> str:
    words = [_in_cpp(p) for p in signature.parameters]
    if signature.positions < len(words):
        words.insert(signature.positions, "*")
    return ", ".join(words)


def _in_cpp(p: Parameter) -> str:
    if p.is_list:
        kind = {"int": "SymIntArrayRef" if p.is_symbolic else "IntArrayRef",
                "Tensor": "TensorList"}.get(p.kind, p.kind) + f"[{p.size}]" * (p.size > 0)
    else:
        kind = ("SymInt" if p.is_symbolic else "int64_t") if p.kind == "int" else p.kind
    default = f"={p.default}" if p.default is not None else ""
    return f"{kind}{'?' * p.nullable} {p.name}{default}"


__all__ = ["OPTIONS", "Signature", "function_signature", "in_order", "method_signature", "parse",
           "python_signature", "title"]
