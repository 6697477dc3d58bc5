"""PyTorch's notation for the parts of a graph: overloads, sizes, tensors, arguments."""
from __future__ import annotations

import ast
import contextlib
import operator
from typing import Any

import flambeau
from flambeau import Tensor, fx
from flambeau.export._trace import overloads
from flambeau.export._trace.sizes import Expression, Symbol

_DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
           "complex32", "complex64", "complex128", "bool", "bfloat16"]
DTYPE_NUMBERS = {getattr(flambeau, name): i + 1 for i, name in enumerate(_DTYPES)} | {
    flambeau.uint16: 28, flambeau.float8_e4m3fn: 29, flambeau.float8_e5m2: 30,
    flambeau.float8_e4m3fnuz: 31, flambeau.float8_e5m2fnuz: 32}
DTYPE_OF = {n: dtype for dtype, n in DTYPE_NUMBERS.items()}
FORMATS = [flambeau.contiguous_format, flambeau.channels_last, flambeau.channels_last_3d,
           flambeau.preserve_format]
STRIDED = 7
SCALARS: dict[str, Any] = {"_operator.mul": operator.mul, "_operator.add": operator.add,
                           "_operator.floordiv": operator.floordiv, "_operator.sub": operator.sub,
                           "_operator.ge": operator.ge, "_operator.le": operator.le,
                           "_operator.eq": operator.eq, "_operator.gt": operator.gt,
                           "_operator.lt": operator.lt}


def size_json(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_expr": {"expr_str": _formula(value), "hint": {"as_int": value.hint}}}


def _formula(value: Any) -> str:
    """An expression of sizes as PyTorch's files have it."""
    if isinstance(value, Symbol):
        return f"Symbol('{value.name}', positive=True, integer=True)"
    sums = []
    for factor, symbols in value.terms:
        parts = [_formula(s) for s in symbols]
        if factor != 1 or not parts:
            parts.insert(0, f"Integer({factor})")
        sums.append(parts[0] if len(parts) == 1 else f"Mul({', '.join(parts)})")
    text = sums[0] if len(sums) == 1 else f"Add({', '.join(sums)})"
    return text if value.divisor == 1 else f"FloorDiv({text}, Integer({value.divisor}))"


def tensor_json(value: Tensor, sizes: Any = None) -> dict[str, Any]:
    return {"dtype": DTYPE_NUMBERS[value.dtype],
            "sizes": [size_json(n) for n in (value.shape if sizes is None else sizes)],
            "requires_grad": value.requires_grad, "device": {"type": "cpu", "index": None},
            "strides": [size_json(n) for n in value.stride()],
            "storage_offset": {"as_int": 0}, "layout": STRIDED}


def _is_number(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), (Symbol, Expression))


def argument_json(value: Any) -> dict[str, Any]:
    """A value in the file's union of types."""
    if isinstance(value, fx.Node):
        return {"as_sym_int": {"as_name": value.name}} if _is_number(value) \
            else {"as_tensor": {"name": value.name}}
    if isinstance(value, (list, tuple)):
        return _list(list(value))
    simple = {type(None): ("as_none", True), bool: ("as_bool", value), int: ("as_int", value),
              float: ("as_float", value), str: ("as_string", value)}
    if type(value) in simple:
        name, held = simple[type(value)]
        return {name: held}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    if isinstance(value, flambeau.dtype):
        return {"as_scalar_type": DTYPE_NUMBERS[value]}
    if isinstance(value, flambeau.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, flambeau.memory_format):
        return {"as_memory_format": FORMATS.index(value) + 1}
    if isinstance(value, flambeau.layout):
        return {"as_layout": STRIDED}
    raise NotImplementedError(f"export.save: an argument of type {type(value).__name__}")


def _list(values: list[Any]) -> dict[str, Any]:
    if any(_is_number(v) for v in values):
        return {"as_sym_ints": [{"as_name": v.name} if _is_number(v) else {"as_int": v}
                                for v in values]}
    if any(isinstance(v, fx.Node) for v in values):
        if all(isinstance(v, fx.Node) for v in values):
            return {"as_tensors": [{"name": v.name} for v in values]}
        return {"as_optional_tensors": [argument_json(v) for v in values]}
    for kind, name in ((bool, "as_bools"), (int, "as_ints"), (float, "as_floats"),
                       (str, "as_strings")):
        if all(type(v) is kind for v in values):
            return {name: values} if values or kind is int else {"as_ints": []}
    if all(isinstance(v, (int, float)) for v in values):
        return {"as_floats": [float(v) for v in values]}
    raise NotImplementedError(f"export.save: a list of {values}")


def parse_expression(text: str, hints: dict[str, int]) -> Any:
    """An expression of sizes, from PyTorch's text. Nothing is evaluated."""
    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = node.func.id
            if kind == "Symbol":
                name = ast.literal_eval(node.args[0])
                return Symbol(name, hints.get(name, 0))
            if kind in ("Integer", "int"):
                return ast.literal_eval(node.args[0])
            parts = [build(arg) for arg in node.args]
            if kind == "Mul":
                return _product(parts)
            if kind == "Add":
                return _sum(parts)
            if kind == "FloorDiv" and isinstance(parts[1], int):
                return Expression(_terms(parts[0]), parts[1])
        raise NotImplementedError(f"export.load: the size {text}")
    return build(ast.parse(text, mode="eval").body)


def _terms(value: Any) -> tuple[tuple[int, tuple[Symbol, ...]], ...]:
    if isinstance(value, int):
        return ((value, ()),)
    return ((1, (value,)),) if isinstance(value, Symbol) else value.terms


def _product(parts: list[Any]) -> Any:
    terms: Any = ((1, ()),)
    for part in parts:
        terms = tuple([(a * b, (*s, *t)) for a, s in terms for b, t in _terms(part)])
    return Expression(terms)


def _sum(parts: list[Any]) -> Any:
    return Expression(tuple([term for part in parts for term in _terms(part)]))


def function_of(target: str) -> Any:
    if target in SCALARS:
        return SCALARS[target]
    parts, found = target.split("."), None
    with contextlib.suppress(AttributeError):
        if parts[:3] == ["torch", "ops", "aten"] and len(parts) == 5:
            found = overloads.target(parts[3], parts[4])
        elif parts[:2] == ["torch", "ops"] and len(parts) == 5:
            found = getattr(getattr(getattr(flambeau.ops, parts[2]), parts[3]), parts[4])
    if found is None:
        raise NotImplementedError(f"export.load: the op {target}")
    return found
