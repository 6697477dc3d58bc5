"""What PyTorch asks of the parts of a sparse tensor, as operations: the `_validate_…` functions.

The constructors call the same checks where `check_invariants` says so.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import type_info
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.ops.sparse import compressed as forms

_FLAG = "bool? check_pinning=None) -> ()"
_INDICES = {"csr": "crow_indices, Tensor col_indices", "csc": "ccol_indices, Tensor row_indices"}
_INDICES.update(bsr=_INDICES["csr"], bsc=_INDICES["csc"])


@op(f"_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, SymInt[] size, "
    f"bool? is_coalesced=None, {_FLAG}", method=False)
def validate_coo(indices: Tensor, values: Tensor, size: Any, is_coalesced: bool | None,
                 check_pinning: bool | None = None) -> None:
    """Raise unless these are the indices and values of a `sparse_coo` tensor of that size."""
    forms.check_coordinate_parts(indices._array, values._array, size)
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(indices.dtype)}")
    forms.check_coordinates(indices._array, values._array, size[:len(indices._array)],
                            is_coalesced)


@op("_validate_sparse_compressed_tensor_args(Tensor compressed_indices, Tensor plain_indices, "
    f"Tensor values, SymInt[] size, Layout layout, {_FLAG}", method=False)
def validate_compressed(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor,
                        size: Any, layout: Any, check_pinning: bool | None = None) -> None:
    """Raise unless these are the parts of a tensor of that compressed layout and size."""
    if layout not in forms.COMPRESSED:
        raise RuntimeError("validate_sparse_compressed_tensor_args expected sparse compressed "
                           f"tensor layout but got {forms.TITLES.get(layout, layout)}")
    for name, part in zip((*forms.names_of(layout), "values"),
                          (compressed_indices, plain_indices, values)):
        if part.layout is not type_info.strided:
            raise RuntimeError(f"expected {name} to be a strided tensor but got "
                               f"{forms.TITLES.get(part.layout, part.layout)} tensor")
    forms.check_compressed(compressed_indices._array, plain_indices._array, values._array,
                           tuple(size), layout)


def _of_layout(kind: str) -> Any:
    layout = getattr(type_info, f"sparse_{kind}")

    @op(f"_validate_sparse_{kind}_tensor_args(Tensor {_INDICES[kind]}, Tensor values, "
        f"int[] size, {_FLAG}", method=False)
    def validate(*parts: Any) -> None:
        *tensors, size, check_pinning = parts
        validate_compressed(*tensors, size, layout, check_pinning)
    return validate


for _kind in _INDICES:
    _of_layout(_kind)


@op("_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, "
    "int cdim, int dim, int nnz) -> ()", method=False)
def validate_indices(is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int,
                     nnz: int) -> None:
    """Raise unless the indices are those of `nnz` entries, `cdim` compressed lines of `dim`."""
    layout = forms.CSR if is_crow else forms.CSC
    first, second = forms.names_of(layout)
    outer, inner = compressed_idx._array, plain_idx._array
    if outer.shape[-1] != cdim + 1:
        raise RuntimeError(f"{first} have wrong shape: {first}.shape[-1] = {outer.shape[-1]} is "
                           f"not equal to n{first[1:4]}s + 1 = {cdim + 1}")
    if inner.shape[-1] != nnz:
        raise RuntimeError(f"{second} have wrong shape: {second}.shape[-1] = {inner.shape[-1]} is "
                           f"not equal to nnz = {nnz}")
    if outer.dtype != inner.dtype:
        raise RuntimeError(f"Found dtype {type_name(compressed_idx.dtype)} but expected "
                           f"{type_name(plain_idx.dtype)}")
    forms.check_entries(outer, inner, dim, layout, nnz)


__all__: list[str] = []
