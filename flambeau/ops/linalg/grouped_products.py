"""Products of groups of matrices, and of 8-bit matrices with scales."""
from __future__ import annotations

from enum import Enum
from typing import Any

import flambeau
from flambeau.core import dtypes
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.python_functions import python_function

NETWORK = "nn.functional"


class _ScalingType(Enum):
    """What one scale of a matrix applies to."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5

    def __int__(self) -> int:
        return self.value


class _SwizzleType(Enum):
    """In which order the scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1

    def __int__(self) -> int:
        return self.value


ScalingType, SwizzleType = _ScalingType, _SwizzleType
_GROUPED_TYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
_EIGHT_BITS = ("float8_e4m3fn", "float8_e5m2")


# ---- groups --------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None,
               bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """The product of each group of `mat_a` with that of `mat_b`, as layers of experts need.

    A stack (g, m, k) holds a group at each place. A matrix holds them side by side, and group i
    ends before `offs[i]`: rows of a matrix `mat_a` that meets a stack, columns of a matrix `mat_b`
    that meets a stack, and the common dimension of two matrices, whose products are stacked.
    What lies behind the last offset is zero.

    >>> import flambeau
    >>> x, w = flambeau.ones(3, 2), flambeau.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> ends = flambeau.tensor([1, 3], dtype=flambeau.int32)
    >>> flambeau.nn.functional.grouped_mm(x, w, offs=ends).T
    tensor([[2., 4., 4.]])
    """
    _check_groups(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return mat_a @ mat_b
    ends: list[int] = offs.tolist()
    starts = [0, *ends[:-1]]
    if mat_a.dim() == mat_b.dim():
        return flambeau.stack([mat_a[:, s:e] @ mat_b[s:e] for s, e in zip(starts, ends)])
    if mat_a.dim() == 2:
        parts = [mat_a[s:e] @ b for s, e, b in zip(starts, ends, mat_b)]
        rest = mat_a.new_zeros(mat_a.size(0) - ends[-1], mat_b.size(-1))
        return flambeau.cat([*parts, rest])
    parts = [a @ mat_b[:, s:e] for s, e, a in zip(starts, ends, mat_a)]
    return flambeau.cat([*parts, mat_a.new_zeros(mat_a.size(1), mat_b.size(1) - ends[-1])], 1)


def _check_groups(a: Tensor, b: Tensor, offs: Any, bias: Any, out_dtype: Any) -> None:
    for name, matrix in (("mat_a", a), ("mat_b", b)):
        if matrix.dtype not in _GROUPED_TYPES:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                               f"{type_name(matrix.dtype)}")
        if matrix.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat = a.dim() == 2 or b.dim() == 2
    if a.size(-1) != b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if flat is (offs is None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both "
                           "matrices are 3d")
    if offs is not None and offs.dtype != dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    stacks = [m.size(0) for m in (a, b) if m.dim() == 3]
    if len(stacks) == 2 and stacks[0] != stacks[1]:
        raise RuntimeError("batched dimension has to match")
    if offs is not None and len(stacks) == 1 and offs.size(0) != stacks[0]:
        raise RuntimeError("matrix batch sizes have to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


# ---- scales --------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any,
              scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None,
              bias: Tensor | None = None, output_dtype: Any = dtypes.bfloat16,
              contraction_dim: Any = (), use_fast_accum: bool = False) -> Tensor:
    """(scale_a · mat_a) @ (scale_b · mat_b) + bias, for matrices of 8-bit floating numbers.

    A recipe says what a scale is for: `ScalingType.TensorWise` is one number for the matrix,
    `RowWise` one for each row of `mat_a` (m, 1) or each column of `mat_b` (1, n).

    >>> import flambeau
    >>> from flambeau.nn.functional import ScalingType, scaled_mm
    >>> x, w = flambeau.ones(2, 2).to(flambeau.float8_e5m2), flambeau.tensor(0.5)
    >>> scaled_mm(x, x, w, ScalingType.TensorWise, w, ScalingType.TensorWise)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]], dtype=torch.bfloat16)
    """
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dim() != 2:
            raise ValueError(f"{name} must be a matrix")
    (m, k), (rows, n) = mat_a.shape, mat_b.shape
    if k != rows:
        raise ValueError(f"mat_a and mat_b shapes cannot be multiplied ({m}x{k} and {rows}x{n})")
    left, right = _single_entry(scale_a), _single_entry(scale_b)
    recipes = _single_entry(scale_recipe_a), _single_entry(scale_recipe_b)
    shapes = {ScalingType.TensorWise: ((), ()), ScalingType.RowWise: ((m, 1), (1, n))}
    if recipes[0] is not recipes[1] or recipes[0] not in shapes or any(
            str(matrix.dtype)[6:] not in _EIGHT_BITS or scale.dtype != dtypes.float32
            or not (tuple(scale.shape) == shape or (not shape and scale.numel() == 1))
            for matrix, scale, shape in zip((mat_a, mat_b), (left, right), shapes[recipes[0]])):
        raise ValueError(
            "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, "
            "scales should be float and singletons.\n- For RowWise scaling, a and b should be "
            f"float8, scales should be float, scale_a should be ({m}, 1) and scale_b should be "
            f"(1, {n}), and both should be contiguous.\nGot mat_a.dtype()="
            f"{type_name(mat_a.dtype)}, mat_b.dtype()={type_name(mat_b.dtype)}")
    if recipes[0] is ScalingType.TensorWise:
        left, right = left.reshape(()), right.reshape(())
    result = (mat_a.float() @ mat_b.float()) * left * right
    if bias is not None:
        result = result + bias.float()
    return result.to(mat_a.dtype if output_dtype is None else output_dtype)


def _single_entry(given: Any) -> Any:
    """The one entry of a list, or what is given itself."""
    if isinstance(given, (list, tuple)):
        if len(given) != 1:
            raise NotImplementedError("scaled_mm(): scales of scales are not there on the CPU")
        return given[0]
    return given


@python_function(namespace=NETWORK)
def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any,
                      scale_b: Any, scale_recipe_b: Any, swizzle_a: Any = None,
                      swizzle_b: Any = None, bias: Tensor | None = None,
                      offs: Tensor | None = None, output_dtype: Any = dtypes.bfloat16,
                      contraction_dim: Any = (), use_fast_accum: bool = False) -> Tensor:
    """`grouped_mm` of 8-bit matrices with scales; PyTorch has it on accelerators alone."""
    raise NotImplementedError("scaled_grouped_mm(): not there on the CPU")
