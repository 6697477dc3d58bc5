"""From one layout to another: `to_sparse` and its kin, with what PyTorch refuses of them."""
from __future__ import annotations

from typing import Any

from flambeau.core import type_info
from flambeau.core.tensor import Tensor
from flambeau.dispatch.members import member
from flambeau.kernels.refused import refuse
from flambeau.ops.python.methods import adopt
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.compressed import BLOCKED, COO, TITLES
from flambeau.ops.sparse.tensors import SparseTensor, blocksize_of, is_sparse, sparse_dim_of
from flambeau.ops.sparse.values import change_form, form_of, to_dense

STRIDED = type_info.strided


@member("to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, "
        "int? dense_dim=None) -> Tensor", "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> "
        "Tensor", function=False)
def to_sparse(self: Tensor, layout: Any, blocksize: Any, dense_dim: int | None,
              sparse_dim: int | None) -> Tensor:
    """This tensor in a sparse layout, by default coordinates.

    `sparse_dim` of its first dimensions are sparse; `blocksize` is for bsr and bsc; `dense_dim` of
    the last dimensions stay dense.

    >>> import flambeau
    >>> flambeau.tensor([[0, 2], [3, 0]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([2, 3]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    if self._array.size and layout in (None, COO) and not is_sparse(self):
        refuse(self._array, "U8", "nonzero_count_cpu")
    if sparse_dim is None:
        return _convert_layout(self, layout or COO, blocksize, dense_dim, "", "ToSparseBackward1")
    _check_sparse_dim(self, sparse_dim)
    if self.layout in forms.COMPRESSED:
        return _convert_layout(self, COO, None, None, "", "ToSparseBackward0")
    form = COO, sparse_dim, None, self._array.ndim - sparse_dim
    return _change_if_needed(self, form, "ToSparseBackward0")


def _check_sparse_dim(self: Tensor, sparse_dim: int) -> None:
    ndim, layout = self._array.ndim, self.layout
    if is_sparse(self):
        has = sparse_dim_of(self) if layout is COO else 2
        if sparse_dim != has:
            name, wanted = ("to_sparse", "self.sparse_dim()") if layout is COO \
                else ("sparse_compressed_to_sparse", 2)
            raise RuntimeError(f"{name}: conversion from {TITLES[layout]} to Sparse with "
                               f"sparse_dim argument !={wanted} is not supported")
    elif not 0 <= sparse_dim <= ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, "
                           f"but {sparse_dim} is given")
    elif ndim and not sparse_dim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")


def _change_if_needed(self: Tensor, form: Any, node: str) -> Tensor:
    found = form_of(self)
    return self if found == form else change_form(self, form, found, node)


def _convert_layout(self: Tensor, layout: Any, blocksize: Any, dense_dim: Any, suffix: str,
                    node: str) -> Tensor:
    """This tensor in another layout; `suffix` is that of the method that was called."""
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    _check_conversion(self, layout, blocksize, dense_dim, suffix)
    if layout is STRIDED:
        return to_dense(self)
    ndim = self._array.ndim
    dense = ndim - sparse_dim_of(self) if is_sparse(self) else dense_dim or 0
    blocks = tuple(int(n) for n in blocksize) if layout in BLOCKED else None
    return _change_if_needed(self, (layout, ndim - dense, blocks, dense), node)


def _check_conversion(self: Tensor, layout: Any, blocksize: Any, dense_dim: Any,
                      suffix: str) -> None:
    source = self.layout
    name = _name_of_conversion(source, layout, suffix)
    change = f"{name}: conversion from {TITLES[source]} to {TITLES[layout]}"
    ndim = self._array.ndim
    spanned = sparse_dim_of(self) if is_sparse(self) else 0
    if source is COO and layout is not COO and spanned != 2:
        raise RuntimeError(f"{change} for input tensors with sparse_dim()!=2 is not supported")
    if source in (forms.CSR, forms.CSC) and layout in BLOCKED and spanned != 2:
        raise RuntimeError(f"{change} for batched inputs is not supported")
    if blocksize is not None:
        _check_blocksize(self, name, change, layout, blocksize, dense_dim)
    elif layout in BLOCKED:
        raise RuntimeError(f"{change} without blocksize argument given is not supported")
    if dense_dim is not None:
        if source is not STRIDED:
            raise RuntimeError(f"{change} with dense_dim argument given is not supported")
        room = ndim if layout is COO else ndim - 2
        if not 0 <= dense_dim <= room:
            raise RuntimeError(f"{name}: dense_dim argument must be in [0,{room}] range, but "
                               f"{dense_dim} is given")
        if ndim and layout is COO and dense_dim == ndim:
            raise RuntimeError(f"{name}: dense_dim argument must be !=self.dim() when self.dim()>0")
    if source in BLOCKED and layout in (forms.CSR, forms.CSC):
        to = str(layout).removeprefix("torch.")
        raise RuntimeError(f"sparse_compressed_to_{to}: expected SparseCsr or SparseCsc layout "
                           f"but got {TITLES[source]}")
    if source is STRIDED and layout in forms.COMPRESSED and ndim - (dense_dim or 0) < 2:
        raise IndexError(f"{name}: a tensor of {ndim} dimensions has no rows and columns to "
                         "compress")


def _name_of_conversion(source: Any, layout: Any, suffix: str) -> str:
    if source is layout:
        return f"to_sparse{suffix}"
    if source is STRIDED:
        return f"dense_to_sparse{suffix}"
    if source is COO:
        return f"coo_to_sparse{suffix}" if suffix else "sparse_coo_to_sparse"
    return f"sparse_compressed_to_sparse{suffix}"


def _check_blocksize(self: Tensor, name: str, change: str, layout: Any, blocksize: Any,
                     dense_dim: Any) -> None:
    if len(blocksize) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got "
                           f"{len(blocksize)}")
    if min(blocksize) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(blocksize)}")
    if layout not in BLOCKED:
        raise RuntimeError(f"{change} with blocksize argument given is not supported")
    has = blocksize_of(self) if is_sparse(self) else None
    if has is not None:
        if tuple(has) != tuple(blocksize):
            raise RuntimeError(f"{change} with blocksize changed from {list(has)} to "
                               f"{list(blocksize)} is not supported")
        return
    dense = self.dense_dim() if is_sparse(self) else dense_dim or 0
    rows, cols = self.size(-2 - dense), self.size(-1 - dense)
    if rows % blocksize[0] or cols % blocksize[1]:
        raise RuntimeError(f"{name}: tensor sparse size ({rows},{cols}) must be divisible by "
                           f"given blocksize ({blocksize[0]},{blocksize[1]})")


class _Methods(Tensor):
    """Those that PyTorch too writes in Python."""

    def to_sparse_coo(self) -> Tensor:
        """This tensor as coordinates and values."""
        return to_sparse(self)


adopt(_Methods)


@member("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", function=False)
def to_sparse_csr(self: Tensor, dense_dim: int | None) -> Tensor:
    """This tensor as compressed rows."""
    return _convert_layout(self, forms.CSR, None, dense_dim, "_csr", "ToSparseCsrBackward0")


@member("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor", function=False)
def to_sparse_csc(self: Tensor, dense_dim: int | None) -> Tensor:
    """This tensor as compressed columns."""
    return _convert_layout(self, forms.CSC, None, dense_dim, "_csc", "ToSparseCscBackward0")


@member("to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
        function=False)
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None) -> Tensor:
    """This tensor as compressed rows of blocks."""
    return _convert_layout(self, forms.BSR, blocksize, dense_dim, "_bsr", "ToSparseBsrBackward0")


@member("to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
        function=False)
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None) -> Tensor:
    """This tensor as compressed columns of blocks."""
    return _convert_layout(self, forms.BSC, blocksize, dense_dim, "_bsc", "ToSparseBscBackward0")


@member("_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)", method=False)
def _sparse_broadcast_to(input: SparseTensor, size: Any) -> Tensor:
    """The entries repeated along new dimensions in front, and along those of one element."""
    from flambeau.ops.sparse.places import broadcast_to
    return broadcast_to(input, size)


__all__: list[str] = []
