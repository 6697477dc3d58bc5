"""Canonical arguments: what kernels and formulas get for what users pass.

Dimensions are counted from the front, lists are tuples, types are NumPy's, and whole numbers where
floats are wanted are floats. Which value becomes what follows from its type in the schema and from
the declaration, which names the dimensions:

>>> canonical_value(DIM, -1, 3), canonical_value(DIMS, [0, -1], 3), canonical_value(INTS, 2, 3, 2)
(2, (0, 2), (2, 2))
>>> canonical_value(DTYPE, flambeau.float64, 3), canonical_value(FLOAT, 1, 3)
(dtype('float64'), 1.0)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.shapes import wrap_dim, wrap_dims
from flambeau.schema.parser import Parameter

if TYPE_CHECKING:
    from flambeau.core.op import Op
    from flambeau.core.tensor import Tensor
    from flambeau.dispatch.declaration import Declaration

# The same numbers stand in `csrc/calling/calling.h`.
(AS_IS, DIM, NEW_DIM, DIMS, INTS, DTYPE, TENSORS, ALL_DIMS, SIZES, SOME_DIMS, EXTENTS,
 NUMBER, FLOAT) = range(13)


def role_of(parameter: Parameter, declaration: Declaration) -> int:
    """How the values of a parameter become canonical: `dims` are dimensions of the first tensor,
    `new_dims` of one that has one more, `all_dims` all of them in some order, `some_dims` maybe
    none of them; `sizes` are extents, of which those that are to be found out are left to the
    declaration's `canonical`."""
    def named(fact: str) -> bool:
        return parameter.kind == "int" and parameter.name in getattr(declaration, fact).split()

    if named("all_dims"):
        return ALL_DIMS
    if named("sizes"):
        return SIZES
    if named("some_dims"):
        return SOME_DIMS if parameter.is_list else DIM
    if named("new_dims"):
        return NEW_DIM
    if named("dims"):
        return DIMS if parameter.is_list else DIM
    if parameter.is_list:
        return TENSORS if parameter.is_tensor else INTS if parameter.kind == "int" else AS_IS
    if parameter.kind == "float":
        return FLOAT
    return DTYPE if parameter.kind == "ScalarType" and not declaration.body else AS_IS


def canonical_value(role: int, value: Any, ndim: int, size: int = 0) -> Any:
    """The canonical form of a value for a parameter of that role; None stays None.

    ndim    of the first tensor
    size    how many elements a single value of a list stands for
    """
    if value is None or role == AS_IS:
        return value
    if role == DIM:
        return wrap_dim(value, ndim)
    if role == NEW_DIM:
        return wrap_dim(value, ndim + 1)
    if role in (DIMS, SOME_DIMS):
        dims = wrap_dims(value, ndim)
        return dims if dims and ndim else () if role == SOME_DIMS else None
    if role == FLOAT:
        return float(value) if isinstance(value, int) else value
    if role == DTYPE:
        return as_numpy_dtype(value)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * size


def with_out_dtype(out: Tensor, op: Op, canonical: tuple[Any, ...]) -> tuple[Any, ...]:
    """Canonical arguments with the type of `out` for a `dtype` that was not given."""
    own, declared = op.declaration.canonical_parameters(op.schema), op.declaration
    place, kept = [p.name for p in own].index("dtype"), declared.typed_by_out == "floating"
    if canonical[place] is not None or (kept and canonical[0].is_floating_point()
                                        and not out.is_floating_point()):
        return canonical
    found = out.dtype if op.composite else out._array.dtype
    return *canonical[:place], found, *canonical[place + 1:]
