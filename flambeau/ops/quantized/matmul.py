"""Products with matrices of few bits: 8-bit integers, 4-bit weights in packs, 8-bit floats."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.promotion import c_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op

_BLOCK = 64         # rows that one block of packed 4-bit weights holds


# ---- 8-bit integers -----------------------------------------------------------------------------

def _check_int_mm(self: Tensor, mat2: Tensor) -> None:
    name = "int_mm_out_cpu: "
    if self.ndim != 2:
        raise RuntimeError(f"{name}Expected self to be of dimension 2 but got {self.ndim}")
    if mat2.ndim != 2:
        raise RuntimeError(f"{name}Expected mat2 to be of dimension 2 but got {mat2.ndim}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"{name}self.size(1) needs to match mat2.size(0) but got "
                           f"{self.shape[1]} and {mat2.shape[0]}")
    if self.dtype not in (flambeau.int8, flambeau.uint8):
        raise RuntimeError(f"{name}Expected self dtype to be int8 or uint8 but got "
                           f"{c_name(self.dtype)}")
    if mat2.dtype is not flambeau.int8:
        raise RuntimeError(f"{name}Expected mat2 dtype to be of type int8 but got "
                           f"{c_name(mat2.dtype)}")


@op("_int_mm(Tensor self, Tensor mat2) -> Tensor", method=False, explicit=True)
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of 8-bit integers, (n, k) and (k, m), in 32-bit ones.

    >>> import flambeau
    >>> x = flambeau.full((1, 2), 100, dtype=flambeau.int8)
    >>> flambeau._int_mm(x, x.T)
    tensor([[20000]], dtype=torch.int32)
    """
    _check_int_mm(self, mat2)
    return self.to(flambeau.int32) @ mat2.to(flambeau.int32)


def _check_factors(name: str, a: Tensor, b: Tensor, packed: Any) -> None:
    """Refuse numbers `a` and `packed` weights `b` that the products with packed weights refuse."""
    if a.dtype not in (flambeau.bfloat16, flambeau.float16, flambeau.float32):
        raise RuntimeError(f"{name}A to be either 32-bit or 16-bit float tensor.")
    if not a.is_contiguous() or a.ndim != 2:
        raise RuntimeError(f"{name}A to be contiguous and 2D tensor.")
    if b.dtype is not packed:
        raise RuntimeError(f"{name}B to be {str(packed).removeprefix('torch.')} tensor.")
    if not b.is_contiguous():
        raise RuntimeError(f"{name}B to be contiguous.")


@op("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", method=False,
    out=False, explicit=True)
def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """`self @ (mat2 * scales[:, None]).T`: numbers (n, k) times weights (m, k) of 8 bits that have
    a scale for each row."""
    name = "_weight_int8pack_mm_cpu : expect "
    rows = mat2.shape[0]
    _check_factors(name, self, mat2, flambeau.int8)
    if mat2.shape[1] != self.shape[1]:
        raise RuntimeError(f"{name}B.size(1) == {self.shape[1]}")
    if scales.ndim != 1 or scales.shape[0] != rows:
        raise RuntimeError(f"{name}scales to be 1d tensor with size {rows}")
    product = self.to(flambeau.float32) @ mat2.to(flambeau.float32).T
    return (product * scales).to(self.dtype)


# ---- 4-bit weights ------------------------------------------------------------------------------

def _row_blocks(rows: int) -> list[slice]:
    return [slice(start, min(start + _BLOCK, rows)) for start in range(0, rows, _BLOCK)]


@op("_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor", method=False,
    out=False, explicit=True)
def _convert_weight_to_int4pack_for_cpu(self: Tensor, innerKTiles: int) -> Tensor:
    """Weights (m, k) from 0 to 15, two in a byte (m, k / 2), for `_weight_int4pack_mm_for_cpu`.

    Blocks of 64 rows lie column by column; a byte of a full block holds rows r and r + 32, of a
    smaller one rows that are neighbours.
    """
    name = "_convert_weight_to_int4pack_cpu : expect "
    if self.ndim != 2:
        raise RuntimeError(f"{name}weight to be 2D tensor.")
    if self.dtype is not flambeau.int32:
        raise RuntimeError(f"{name}weight to be kInt.")
    rows, columns = self.shape
    if rows % 16:
        raise RuntimeError(f"{name}N to be dividable by 16")
    if columns % 2:
        raise RuntimeError(f"{name}K to be dividable by 2")
    packs = []
    for block in _row_blocks(rows):
        part = self[block].T                                    # (k, rows of the block)
        low, high = part.chunk(2, 1) if part.shape[1] == _BLOCK else (part[:, ::2], part[:, 1::2])
        packs.append((high * 16 + low).to(flambeau.uint8).reshape(-1, columns // 2))
    return flambeau.cat(packs)


def _unpack_int4(packed: Tensor) -> Tensor:
    rows, columns = packed.shape[0], 2 * packed.shape[1]
    parts = []
    for block in _row_blocks(rows):
        part = packed[block].reshape(columns, -1)
        halves = part & 15, part >> 4
        parts.append(flambeau.cat(halves, 1) if 2 * part.shape[1] == _BLOCK
                     else flambeau.stack(halves, 2).flatten(1))
    return flambeau.cat([part.T for part in parts])


@op("_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) "
    "-> Tensor", method=False, out=False, explicit=True)
def _weight_int4pack_mm_for_cpu(self: Tensor, mat2: Tensor, qGroupSize: int,
                                qScaleAndZeros: Tensor) -> Tensor:
    """`self @ W.T` with packed weights W = (q - 8) * scale + zero, (m, k), where each group of
    `qGroupSize` columns of a row has a scale and a zero.

    qScaleAndZeros  (k / qGroupSize, m, 2)
    """
    name = "_weight_int4pack_mm_cpu : expect "
    _check_factors(name, self, mat2, flambeau.uint8)
    if qGroupSize not in (32, 64, 128, 256):
        raise RuntimeError(f"{name}qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    if qScaleAndZeros.ndim != 3 or qScaleAndZeros.shape[1] != mat2.shape[0] \
            or qScaleAndZeros.shape[2] != 2:
        raise RuntimeError("_weight_int4pack_mm_cpu: expect qScaleAndZeros to be 3d tensor with "
                           f"sizes [:, {mat2.shape[0]}, 2]")
    scale, zero = (v.to(flambeau.float32).T.repeat_interleave(qGroupSize, 1)
                   for v in qScaleAndZeros.unbind(2))
    weight = (_unpack_int4(mat2).to(flambeau.float32) - 8) * scale + zero
    return (self.to(flambeau.float32) @ weight.T).to(self.dtype)


@op("_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int "
    "block_size, int in_features, int out_features) -> Tensor", method=False, out=False,
    explicit=True)
def _dyn_quant_pack_4bit_weight(weights: Tensor, scales_zeros: Tensor, bias: Tensor | None,
                                block_size: int, in_features: int, out_features: int) -> Tensor:
    """Weights of 4 bits, two in a byte (m, k / 2), with their scales and the bias, in one row for
    `_dyn_quant_matmul_4bit`."""
    if weights.dtype is not flambeau.uint8:
        raise RuntimeError("dyn_quant_pack_4bit_weight_cpu: expect weights to be uint8")
    if block_size != in_features and (block_size % 32 or in_features % block_size):
        raise RuntimeError("block_size must be in_features, or a multiple of 32 that divides "
                           f"in_features; got {block_size} and {in_features}")
    parts = [weights, scales_zeros, *([] if bias is None else [bias])]
    return flambeau.cat([part.flatten().to(flambeau.float32) for part in parts])


def _round_half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)       # halves away from 0


def _quantized_rows(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows as integers from -128 to 127 less their zero points, and the rows' scales."""
    low = np.minimum(x.min(1, keepdims=True), 0)
    high = np.maximum(x.max(1, keepdims=True), 0)
    span = high - low
    scale = np.divide(np.float32(255), span, out=np.ones_like(span), where=span != 0)
    low, high = low * scale, high * scale
    zero = np.where((-128 + low) + (127 + high) > 0, -128 - low, 127 - high)
    zero = _round_half_away(np.clip(zero, -128, 127))
    return np.clip(_round_half_away(x * scale) + zero, -128, 127) - zero, 1 / scale


@op("_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, "
    "int out_features) -> Tensor", method=False, out=False, explicit=True)
def _dyn_quant_matmul_4bit(inp: Tensor, packed_weights: Tensor, block_size: int, in_features: int,
                           out_features: int) -> Tensor:
    """`inp`, each row rounded to 8 bits, times weights of 4 bits that
    `_dyn_quant_pack_4bit_weight` has packed."""
    count, groups = out_features * in_features // 2, in_features // block_size
    packed = packed_weights._array
    pairs = packed[:count].astype(np.uint8).reshape(out_features, -1)
    weight = np.stack([pairs & 15, pairs >> 4], 2).reshape(out_features, groups, block_size)
    scales = packed[count:count + out_features * groups].reshape(out_features, groups, 1)
    weight = ((weight.astype(np.float32) - 8) * scales).reshape(out_features, in_features)
    rows, steps = _quantized_rows(inp._array.reshape(-1, in_features).astype(np.float32))
    result = rows @ weight.T * steps
    bias = packed[count + out_features * groups:]
    if bias.size:
        result = result + bias
    return flambeau.from_numpy(result.astype(np.float32)).to(inp.dtype)


# ---- 8-bit floats -------------------------------------------------------------------------------

_EIGHT_BITS = (flambeau.float8_e4m3fn, flambeau.float8_e5m2)


@op("_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    method=False, out=False, explicit=True)
def _scaled_mm(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None,
               scale_result: Tensor | None, out_dtype: Any, use_fast_accum: bool) -> Tensor:
    """`(self * scale_a) @ (mat2 * scale_b) + bias` of matrices of 8-bit floats, computed in
    float32; given in `out_dtype`, by default that of `self`.

    scale_a, scale_b    one number, or one for each row of `self`, (n, 1), and column of `mat2`,
                        (1, m)
    """
    if self.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("mat_a and mat_b must be matrices")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({self.shape[0]}x"
                           f"{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")
    if self.dtype not in _EIGHT_BITS or mat2.dtype not in _EIGHT_BITS:
        raise ValueError("Invalid scaling configuration.")
    for scale, rows in ((scale_a, (self.shape[0], 1)), (scale_b, (1, mat2.shape[1]))):
        if scale.dtype is not flambeau.float32 or (scale.numel() != 1 and scale.shape != rows):
            raise ValueError("Invalid scaling configuration.")
    result = (self.to(flambeau.float32) @ mat2.to(flambeau.float32)) * scale_a * scale_b
    if bias is not None:
        result = result + bias
    target = out_dtype or self.dtype
    if scale_result is not None and target in _EIGHT_BITS:
        result = result / scale_result
    return result.to(target)
