"""The named tuples of functions that give several results.

>>> import flambeau
>>> flambeau.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1)
torch.return_types.max(
values=tensor([3., 2.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from inspect import Parameter, Signature
from operator import itemgetter
from typing import Any


class ReturnType(tuple):
    """A tuple whose elements have names; made from the elements, or from one sequence of them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    n_unnamed_fields = 0
    __signature__ = Signature([Parameter("iterable", Parameter.POSITIONAL_ONLY, default=())])

    def __new__(cls, *values: Any) -> Any:
        if len(values) == 1 and len(cls._fields) != 1:
            values = tuple(values[0])
        if len(values) != len(cls._fields):
            raise TypeError(f"torch.return_types.{cls.__name__}() takes a "
                            f"{len(cls._fields)}-sequence ({len(values)}-sequence given)")
        return tuple.__new__(cls, values)

    def __repr__(self) -> str:
        inner = ",\n".join([f"{name}={value!r}" for name, value in zip(self._fields, self)])
        return f"torch.return_types.{type(self).__name__}(\n{inner})"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


def declare(name: str, fields: str) -> type:
    """A class of results with these names."""
    names = tuple(fields.split())
    members: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(names)}
    members |= {"__slots__": (), "_fields": names, "__match_args__": names,
                "n_fields": len(names), "n_sequence_fields": len(names)}
    made = type(name, (ReturnType,), members)
    made.__module__ = "torch.return_types"
    return made


_FIELDS: dict[str, str] = {
    "aminmax": "min max", "frexp": "mantissa exponent", "geqrf": "a tau",
    "histogram": "hist bin_edges", "histogramdd": "hist bin_edges",
    "linalg_cholesky_ex": "L info", "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors", "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots", "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values", "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots", "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R", "linalg_slogdet": "sign logabsdet", "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh", "lu_unpack": "P L U", "qr": "Q R", "slogdet": "sign logabsdet",
    "svd": "U S V", "triangular_solve": "solution cloned_coefficient",
} | dict.fromkeys(("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian",
                   "sort", "topk"), "values indices")
_FIELDS |= {f"{name}_out": fields for name, fields in _FIELDS.items() if name != "histogramdd"}
_FIELDS["_unpack_dual"] = "primal tangent"


def __getattr__(name: str) -> Any:
    """Each class is made when it is first asked for."""
    if name not in _FIELDS:
        raise AttributeError(f"module 'flambeau.return_types' has no attribute {name!r}")
    made = globals()[name] = declare(name, _FIELDS[name])
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *_FIELDS})
