"""Products of block-sparse matrices, under the names of PyTorch's Triton kernels.

There is no accelerator for Triton here: the products are those of the ordinary ops, and what
prepares their arguments is there for libraries that bring kernels of their own.
"""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.utils._triton import has_triton

__all__ = ["bsr_dense_addmm", "bsr_scatter_mm", "has_triton"]

_HALF_TO_SINGLE = (flambeau.half, flambeau.bfloat16, flambeau.float32)


# ---- checks --------------------------------------------------------------------------------------


def check(cond: bool, msg: str) -> None:
    if not cond:
        raise ValueError(msg)


def check_bsr_layout(f_name: str, t: Any) -> None:
    check(t.layout == flambeau.sparse_bsr,
          f"{f_name}(): only BSR sparse format is supported for the sparse argument.")


def check_device(f_name: str, t: Any, device: Any) -> None:
    check(t.device == device and t.device.type == "cuda",
          f"{f_name}(): all inputs are expected to be on the same GPU device.")


def check_mm_compatible_shapes(f_name: str, lhs: Any, rhs: Any) -> None:
    check(lhs.dim() >= 2 and rhs.dim() >= 2,
          f"{f_name}(): all inputs involved in the matrix product are expected to be at least 2D, "
          f"but got lhs.dim() == {lhs.dim()} and rhs.dim() == {rhs.dim()}.")
    k, rows = lhs.shape[-1], rhs.shape[-2]
    check(k == rows,
          f"{f_name}(): arguments' sizes involved in the matrix product are not compatible for "
          f"matrix multiplication, got lhs.shape[-1] == {k} which is not equal to rhs.shape[-2] "
          f"== {rows}.")


def check_dtype(f_name: str, t: Any, dtype: Any, *additional_dtypes: Any) -> None:
    check(t.dtype == dtype and t.dtype in (*_HALF_TO_SINGLE, *additional_dtypes),
          f"{f_name}(): all inputs are expected to be of the same dtype and one of (half, "
          f"bfloat16, float32) or {additional_dtypes}, but got dtype == {t.dtype}.")


def check_blocksize(f_name: str, blocksize: Any) -> None:
    if len(blocksize) != 2:
        raise AssertionError(f"blocksize must have length 2, got {len(blocksize)}")
    check(all(n >= 16 and not n & (n - 1) for n in blocksize),
          f"{f_name}(): sparse inputs' blocksize ({blocksize[0]}, {blocksize[1]}) should be at "
          "least 16 and a power of 2 in each dimension.")


# ---- arguments -----------------------------------------------------------------------------------


def make_triton_contiguous(t: Any) -> Any:
    """The tensor with a dimension of stride 1 among its last two, copied if it has none."""
    return t.contiguous() if min(t.stride()[-2:]) > 1 else t


def as1Dbatch(tensor: Any) -> Any:
    """The tensor with three dimensions: those in front are one, or are added."""
    while tensor.ndim < 3:
        tensor = tensor.unsqueeze(0)
    return tensor.flatten(0, tensor.ndim - 3) if tensor.ndim > 3 else tensor


def broadcast_batch_dims(f_name: str, *tensors: Any) -> Any:
    """The shape to which the dimensions before the last two broadcast."""
    try:
        return flambeau.broadcast_shapes(*(t.shape[:-2] for t in tensors))
    except Exception:
        check(False, f"{f_name}(): inputs' batch dimensions are not broadcastable!")


def broadcast_batch_dims_bsr(f_name: str, bsr: Any, *tensors: Any) -> Any:
    """`bsr` with the batch dimensions that it and the tensors broadcast to."""
    lead = broadcast_batch_dims(f_name, bsr, *tensors)
    crow, col, values = bsr.crow_indices(), bsr.col_indices(), bsr.values()
    return flambeau.sparse_compressed_tensor(
        crow.broadcast_to((*lead, *crow.shape[-1:])), col.broadcast_to((*lead, *col.shape[-1:])),
        values.broadcast_to((*lead, *values.shape[-3:])), size=(*lead, *bsr.shape[-2:]),
        layout=bsr.layout)


def tile_to_blocksize(t: Any, blocksize: Any) -> Any:
    """A matrix (…, m, n) as its blocks (…, m / rows, n / columns, rows, columns), as a view."""
    *rest, m, n = t.shape
    rows, columns = blocksize
    return t.view(*rest, m // rows, rows, n // columns, columns).transpose(-3, -2)


def prepare_inputs(bsr: Any, *dense_tensors: Any) -> Any:
    """The indices and values of `bsr` and the dense tensors, all with one batch dimension."""
    lead = flambeau.broadcast_shapes(bsr.shape[:-2], *(t.shape[:-2] for t in dense_tensors))

    def batched(t: Any, own: int) -> Any:
        return t.broadcast_to((*lead, *t.shape[-own:])).reshape(-1, *t.shape[-own:])
    return (batched(bsr.crow_indices(), 1), batched(bsr.col_indices(), 1),
            batched(make_triton_contiguous(bsr.values()), 3),
            *[batched(make_triton_contiguous(t), 2) for t in dense_tensors])


# ---- products ------------------------------------------------------------------------------------


def _written(result: Any, out: Any) -> Any:
    return result if out is None else out.copy_(result)


def bsr_dense_addmm(input: Any, bsr: Any, dense: Any, *, beta: Any = 1, alpha: Any = 1,
                    left_alpha: Any = None, right_alpha: Any = None, out: Any = None,
                    skip_checks: bool = False, max_grid: Any = None, meta: Any = None) -> Any:
    """beta · input + left_alpha · (alpha · (bsr @ dense)) · right_alpha, the first by rows and
    the last by columns."""
    if not skip_checks:
        check_bsr_layout("bsr_dense_addmm", bsr)
        check_mm_compatible_shapes("bsr_dense_addmm", bsr, dense)
    product = alpha * (bsr @ dense)
    if left_alpha is not None:
        product = left_alpha.unsqueeze(-1) * product
    if right_alpha is not None:
        product = product * right_alpha.unsqueeze(-2)
    return _written(product + beta * input if beta else product.to(input.dtype), out)


def bsr_scatter_mm(bsr: Any, other: Any, indices_data: Any = None, out: Any = None) -> Any:
    """bsr @ other, for a dense `other`."""
    check_bsr_layout("bsr_scatter_mm", bsr)
    return _written(bsr @ other, out)
