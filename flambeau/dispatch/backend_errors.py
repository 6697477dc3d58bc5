"""What is said of a call with a tensor of another backend: sparse, quantised, nested, opaque.

The rules of these tensors take arguments as they come. PyTorch binds a call before it looks for a
kernel, so a call that fits no signature is wrong in the same words whatever its tensors are; a rule
begins with `check_fit`. A call without a rule is answered by `without_rule`: what is made of other
ops calls those, each of which has its rule or is refused; of what has a kernel, the facts that are
recorded of PyTorch's kernels say how it is refused.
"""
from __future__ import annotations

import inspect
import re
from typing import Any, NoReturn

from flambeau._support.devices.backends import has_no_kernel
from flambeau.core.modes import grad_enabled
from flambeau.core.op import Op
from flambeau.core.promotion import quantized_promotion, scalar_type
from flambeau.core.shapes import broadcast_shapes, written_shape_error
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.core.views import LEAF_WRITTEN
from flambeau.dispatch.aten.schemas import Recorded, recorded, recorded_overload
from flambeau.dispatch.canonical import Overload
from flambeau.dispatch.function import Function
from flambeau.dispatch.python_functions import PythonFunction


def check_fit(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
              ) -> tuple[Overload, list[Any]] | None:
    """Raise the TypeError of a call of a public function that fits no signature; of one that is
    bound to a schema, the overload and the values of its parameters."""
    binder = binder_of(function)
    if isinstance(binder, Function):
        return binder.choose(args, kwargs)
    if isinstance(binder, PythonFunction):
        try:
            inspect.signature(binder.body).bind(*args, **kwargs)
        except TypeError:
            binder.body(*args, **kwargs)            # Python says why
    return None


def binder_of(function: Any) -> Any:
    op = getattr(function, "op", None) or (function if isinstance(function, Op) else None)
    return getattr(op, "binder", None) or getattr(function, "twin", None) or function


def has_no_kernel_of(fit: tuple[Overload, list[Any]], backend: str) -> bool:
    """Has PyTorch neither a kernel of this backend for an overload, nor one made of others? Nested
    tensors are the only ones that no kernel suits which calls other ops below autograd."""
    op = fit[0].op
    schema = (op.functional or op).schema
    if schema is None:
        return False
    name = f"{schema.name}_" if op.inplace else schema.name
    known = recorded_overload(name, schema.overload or "default")
    suits = {"implicit", backend, "implicit" if backend == "NestedTensorCPU" else "explicit"}
    return known is not None and not suits.intersection(known.facts)


def without_rule(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], backend: str,
                 layout: str, fit: tuple[Overload, list[Any]] | None) -> Any:
    """The answer of a call for which there is no rule, with tensors of a `backend` whose `layout`
    has that name; `fit` is what `check_fit` found."""
    binder = binder_of(function)
    if isinstance(binder, PythonFunction):
        return binder.body(*args, **kwargs)
    if fit is None:
        raise without_kernel(function.__name__, backend, args[1:])
    overload, values = fit
    op, schema = overload.op, (overload.op.functional or overload.op).schema
    if schema is None:
        raise without_kernel(op.name, backend, args[1:])
    name = f"{schema.name}_" if op.inplace else schema.name
    if op.inplace and grad_enabled() and values[0].requires_grad and values[0].is_leaf:
        raise RuntimeError(LEAF_WRITTEN)
    known = recorded_overload(name, schema.overload or "default")
    facts = () if known is None else known.facts
    composed = "implicit" in facts or ("explicit" in facts and backend != "NestedTensorCPU")
    if composed and op.composite and not op.inplace:
        return binder.compute(args, kwargs)
    if layout == "jagged":                              # whose kernels are a table of overloads
        raise NotImplementedError(f"aten.{name}.{schema.overload or 'default'}")
    if composed and f"_{name}" in recorded():           # what PyTorch's is made of
        raise without_kernel(f"_{name}", backend, args[1:])
    if composed and "explicit" in facts:
        _refuse_composed(schema.name, known, schema.is_view, backend, layout)
    out = overload.out >= 0 and values[overload.out] is not None
    if known is not None and "structured" in facts and not out:
        if backend not in facts and backend not in ("SparseCPU", "NestedTensorCPU"):
            whole = recorded_overload(schema.name, schema.overload or "default") or known
            _refuse_structured(schema.name, whole, op.inplace, values, backend, layout)
    if out:
        schema_name, facts = _out_overload(schema.name, known)
        raise has_no_kernel(schema_name, backend, facts)
    raise has_no_kernel(f"{name}.{schema.overload}" if schema.overload else name, backend, facts)


def _refuse_structured(name: str, known: Recorded, inplace: bool, values: list[Any],
                       backend: str, layout: str) -> NoReturn:
    """Such a kernel first makes its result, and then calls the form that writes to `out`."""
    if "pointwise" in known.facts:
        _refuse_shapes(values, inplace)
        if backend != "QuantizedCPU":
            raise RuntimeError(f"unsupported tensor layout: {layout}")
        _refuse_promotion(values)
    elif backend == "SparseCsrCPU" and name.startswith("linalg_") and sum(
            isinstance(value, Tensor) for value in values) == 1:
        raise without_kernel("empty_strided", backend)          # for factors that lie by columns
    elif "reduction" in known.facts and backend != "QuantizedCPU":
        raise RuntimeError(f"resize_reduction: support for output with {layout} layout is not "
                           "implemented yet")
    schema_name, facts = _out_overload(name, known)
    raise has_no_kernel(schema_name, backend, facts)


def _refuse_composed(name: str, known: Any, is_view: bool, backend: str, layout: str) -> None:
    """Views ask for strides; what has a kernel that writes to `out` calls that."""
    if is_view and name == "expand":
        raise RuntimeError(f"expand is unsupported for {layout} tensors")
    if is_view and backend == "SparseCsrCPU":
        raise RuntimeError("Sparse CSR tensors do not have strides")
    if is_view:
        raise without_kernel("as_strided", backend)
    schema_name, facts = _out_overload(name, known)
    if facts and not _MADE.intersection(facts):
        raise has_no_kernel(schema_name, backend, facts)
    for overload, other in recorded().get(f"{name}_", {}).items():      # what writes to a copy
        if _parameters(other.line) == _parameters(known.line) and not _MADE.intersection(
                other.facts):
            raise has_no_kernel(f"{name}_.{overload}".removesuffix(".default"), backend,
                                other.facts)


_MADE = frozenset(("explicit", "implicit", "structured"))      # of others, or to write to `out`


def _refuse_shapes(values: list[Any], inplace: bool) -> None:
    """Raise for shapes of operands that do not broadcast, or not to that which is written."""
    shapes = [tuple(v.shape) for v in values if isinstance(v, Tensor)]
    shape = broadcast_shapes(*shapes)
    if inplace and shape != shapes[0]:
        raise written_shape_error(shapes[0], shape)


def _refuse_promotion(values: list[Any]) -> None:
    """Raise where quantised tensors meet elements of other types."""
    tensors = [v for v in values if isinstance(v, Tensor)]
    numbers = [v for v in values[1:2] if type(v) in (bool, int, float, complex)]
    types = dict.fromkeys([t.dtype for t in tensors])
    if len(tensors) == 1 and numbers:
        if type(numbers[0]) in (bool, int):
            raise RuntimeError("empty_strided not supported on quantized tensors yet see "
                               "https://github.com/pytorch/pytorch/issues/74540")
        types[scalar_type(numbers[0])] = None
    if len(types) > 1:
        raise quantized_promotion(*[*types][:2])


_PARAMETER = re.compile(r"(?:^|, )([^,*]+)")


def _parameters(line: str) -> list[str]:
    """The parameters in a schema's text, without those that are written to."""
    inside = line[line.index("(") + 1:].partition(" OUT")[0].partition(") ->")[0]
    return [p for p in _PARAMETER.findall(inside.replace("(a!) self", " self")) if "!)" not in p]


def _out_overload(name: str, known: Recorded | None) -> tuple[str, tuple[str, ...]]:
    """The overload that writes the result of this one to `out`, and what is recorded of it."""
    wanted = None if known is None else _parameters(known.line)
    for overload, other in recorded().get(name, {}).items():
        if "out" in other.facts and _parameters(other.line) == wanted:
            return f"{name}.{overload}", other.facts
    return f"{name}.out", ()


def without_kernel(name: str, backend: str, others: tuple[Any, ...] = (), out: Any = None
                   ) -> NotImplementedError:
    """What PyTorch says where an op has no kernel for a backend; `others` are the arguments after
    the first, which tell overloads apart."""
    space, _, name = name.rpartition(".")
    name = next((n for n in (f"{space}_{name}" if space else name, name) if n in recorded()), name)
    overloads = recorded().get(name, {})
    given = "Tensor" if others and type(others[0]) in tensor_types else "Scalar"
    wanted = [f"{given}_out", "out"] if out is not None else ["default", given]
    overload = next((o for o in wanted if o in overloads), "default")
    full = name if overload == "default" else f"{name}.{overload}"
    return has_no_kernel(full, backend, overloads[overload].facts if overload in overloads else ())


__all__ = ["check_fit", "has_no_kernel_of", "without_kernel", "without_rule"]
