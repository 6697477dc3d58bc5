"""Ops of PyTorch's dispatcher that public functions do without here, as compositions of those."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.dispatch.aten.functions import defines

# ---- forward mode -------------------------------------------------------------------------------

@defines("_make_dual")
def _make_dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    return flambeau.autograd.forward_ad.make_dual(primal, tangent, level=level)


@defines("_unpack_dual")
def _unpack_dual(dual: Tensor, level: int) -> tuple[Tensor, Tensor | None]:
    found = flambeau.autograd.forward_ad.unpack_dual(dual, level=level)
    return found.primal, found.tangent


@defines("_fw_primal")
def _primal(self: Tensor, level: int) -> Tensor:
    return flambeau.autograd.forward_ad.unpack_dual(self, level=level).primal


@defines("_fw_primal_copy")
def _primal_copy(self: Tensor, level: int) -> Tensor:
    return _primal(self, level).clone()


@defines("_make_dual_copy")
def _make_dual_copy(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    return _make_dual(primal, tangent, level).clone()


# ---- rows of different lengths ------------------------------------------------------------------

@defines("_pack_padded_sequence")
def _pack(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    packed = flambeau.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


@defines("_pad_packed_sequence")
def _pad(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float,
         total_length: int) -> tuple[Tensor, Tensor]:
    rnn = flambeau.nn.utils.rnn
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding_value,
                                   total_length if total_length > 0 else None)


# ---- histograms, scans, distinct rows -----------------------------------------------------------

@defines("_histogramdd_bin_edges")
def _edges(self: Tensor, bins: Sequence[int], *, range: Any = None, weight: Tensor | None = None,
           density: bool = False) -> list[Tensor]:
    return list(flambeau.histogramdd(self, list(bins), range, weight, density).bin_edges)


@defines("_histogramdd_from_bin_cts")
def _counts(self: Tensor, bins: Sequence[int], *, range: Any = None, weight: Tensor | None = None,
            density: bool = False) -> Tensor:
    return flambeau.histogramdd(self, list(bins), range, weight, density).hist


@defines("_histogramdd_from_bin_tensors")
def _counts_between(self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None,
                    density: bool = False) -> Tensor:
    return flambeau.histogramdd(self, list(bins), weight=weight, density=density).hist


def _scan_into(name: str) -> Callable[[Tensor, Tensor, Tensor, int], None]:
    def scan(self: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
        found = getattr(flambeau, name)(self, dim)
        values.copy_(found.values)
        indices.copy_(found.indices)
    return scan


defines("_cummax_helper")(_scan_into("cummax"))
defines("_cummin_helper")(_scan_into("cummin"))


@defines("unique_dim_consecutive")
def _distinct(self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
              ) -> tuple[Tensor, Tensor, Tensor]:
    return flambeau.unique_consecutive(self, True, True, dim)


@defines("_dim_arange")
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    return flambeau.arange(like.size(dim), dtype=flambeau.int64)


@defines("_compute_linear_combination")
def _combined(input: Tensor, coefficients: Tensor) -> Tensor:
    return flambeau.tensordot(coefficients, input, ([1], [0]))


# ---- linear algebra -----------------------------------------------------------------------------

@defines("_linalg_check_errors")
def _check_info(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    if info.is_meta or not info.count_nonzero():
        return
    first = int(info.reshape(-1).nonzero()[0])
    where = "" if is_matrix else f"(Batch element {first}): "
    value = int(info.reshape(-1)[first])
    kind, said = flambeau.linalg.LinAlgError, api_name
    if value < 0:
        raise RuntimeError(f"{said}: {where}Argument {-value} has illegal value. Most certainly "
                           "there is a bug in the implementation calling the backend library.")
    if "cholesky" in api_name:
        raise kind(f"{said}: {where}The factorization could not be completed because the input is "
                   f"not positive-definite (the leading minor of order {value} is not "
                   "positive-definite).")
    if "solve" in api_name:
        raise kind(f"{said}: {where}The solver failed because the input matrix is singular.")
    if "inv" in api_name:
        raise kind(f"{said}: {where}The diagonal element {value} is zero, the inversion could not "
                   "be completed because the input matrix is singular.")
    repeated = "singular values" if "svd" in api_name else "eigenvalues"
    raise kind(f"{said}: {where}The algorithm failed to converge because the input matrix is "
               f"ill-conditioned or has too many repeated {repeated} (error code: {value}).")


def _factors(A: Tensor) -> tuple[Tensor, Tensor]:
    by_rows = A.is_contiguous() and not A.is_complex()      # whose columns are the rows of A
    factors = flambeau.linalg.lu_factor_ex(A.mT if by_rows else A)
    return factors.LU, factors.pivots


@defines("_linalg_det")
def _det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return (flambeau.linalg.det(A), *_factors(A))


@defines("_linalg_slogdet")
def _slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return (*flambeau.linalg.slogdet(A), *_factors(A))


@defines("_linalg_solve_ex")
def _solve(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
           ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    found = flambeau.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    factors = flambeau.linalg.lu_factor_ex(A)
    return found.result, factors.LU, factors.pivots, found.info


@defines("_cholesky_solve_helper")
def _cholesky_solve(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    return flambeau.cholesky_solve(self, A, upper)


@defines("linalg__powsum")
def _sum_of_powers(self: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *,
                   dtype: Any = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    return x.abs().pow(ord).sum(dim, keepdim)


# ---- layers -------------------------------------------------------------------------------------

@defines("_fused_rms_norm")
def _rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None,
              eps: float | None) -> tuple[Tensor, Tensor]:
    eps = flambeau.finfo(input.dtype).eps if eps is None else eps
    dims = tuple(range(-len(normalized_shape), 0))
    scale = flambeau.rsqrt(input.pow(2).mean(dims, keepdim=True) + eps)
    return flambeau.nn.functional.rms_norm(input, list(normalized_shape), weight, eps), scale


@defines("_weight_norm_interface")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    norms = flambeau.linalg.vector_norm(v, 2, others, True)
    return flambeau.ops.aten._weight_norm(v, g, dim), norms


@defines("_batch_norm_impl_index")
def _batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                running_mean: Tensor | None, running_var: Tensor | None, training: bool,
                momentum: float, eps: float, cudnn_enabled: bool
                ) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    result, mean, inverse = flambeau.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps)
    return result, mean, inverse, input.new_empty(0, dtype=flambeau.uint8), 0


@defines("_batch_norm_with_update_functional")
def _updated_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                        running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
                        ) -> tuple[Tensor, ...]:
    mean, var = running_mean.clone(), running_var.clone()
    return (*flambeau.ops.aten._batch_norm_with_update(input, weight, bias, mean, var, momentum,
                                                       eps), mean, var)


@defines("_scaled_dot_product_attention_math")
def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
               dropout_p: float = 0.0, is_causal: bool = False,
               dropout_mask: Tensor | None = None, *, scale: float | None = None,
               enable_gqa: bool = False) -> tuple[Tensor, Tensor]:
    from flambeau.ops.nn.attention import attend_with_weights, repeat_heads
    if enable_gqa:
        key, value = repeat_heads(query, key, value)
    drawn = dropout_p if dropout_mask is None else 0.0
    mask = None if attn_mask is None else attn_mask.to(query.dtype)     # bools are added, too
    found, weights = attend_with_weights(query, key, value, mask, is_causal, scale, drawn)
    if dropout_p > 0 and dropout_mask is not None:
        weights = weights * dropout_mask
        found = weights @ (value / (1 - dropout_p))
    return found, weights


@defines("rrelu_with_noise_functional")
def _rrelu(self: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3,
           training: bool = False, generator: Any = None) -> tuple[Tensor, Tensor]:
    drawn = noise.clone()
    result = flambeau.ops.aten.rrelu_with_noise(self, drawn, lower, upper, training, generator)
    return result, drawn


@defines("normal_functional")
def _normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    return flambeau.empty_like(self).normal_(mean, std, generator=generator)


@defines("_add_relu", "_add_relu_")
def _add_relu(self: Tensor, other: Any, alpha: float = 1) -> Tensor:
    return flambeau.relu(flambeau.add(self, other, alpha=alpha))


# ---- rounding to integers -----------------------------------------------------------------------

@defines("_choose_qparams_per_tensor")
def _qparams(self: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    from flambeau.ao.quantization.utils import scale_and_zero_point
    low, high = self.aminmax()
    scale, zero = scale_and_zero_point(
        low, high, 0, 127 if reduce_range else 255, flambeau.tensor(1e-30),
        flambeau.per_tensor_affine, 0)
    return float(scale), int(zero)


@defines("fake_quantize_per_tensor_affine_cachemask")
def _rounded(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
             ) -> tuple[Tensor, Tensor]:
    steps = flambeau.round(self / scale) + zero_point
    result = flambeau.fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min,
                                                      quant_max)
    return result, (steps >= quant_min) & (steps <= quant_max)


@defines("fake_quantize_per_channel_affine_cachemask")
def _rounded_channels(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                      quant_max: int) -> tuple[Tensor, Tensor]:
    shape = [-1 if d == axis % self.ndim else 1 for d in range(self.ndim)]
    steps = flambeau.round(self / scale.view(shape)) + zero_point.view(shape)
    result = flambeau.fake_quantize_per_channel_affine(self, scale, zero_point, axis, quant_min,
                                                       quant_max)
    return result, (steps >= quant_min) & (steps <= quant_max)


def _scale_grad(x: Tensor, factor: float) -> Tensor:
    """The tensor, with its gradient times a factor."""
    return x if factor == 1 else x * factor + x.detach() * (1 - factor)


@defines("_fake_quantize_learnable_per_tensor_affine")
def _learnable(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int,
               grad_factor: float = 1.0) -> Tensor:
    """Rounding that learns its scale: the derivative of `round` counts as 1.

    Source: Esser et al., "Learned step size quantization", 2020.
    """
    scale, zero = _scale_grad(scale, grad_factor), _scale_grad(zero_point, grad_factor)
    nearest = zero + (zero.round().clamp(quant_min, quant_max) - zero).detach()
    steps = self / scale + nearest
    whole = steps + (steps.round() - steps).detach()
    return (whole.clamp(quant_min, quant_max) - nearest) * scale


@defines("_fake_quantize_learnable_per_channel_affine")
def _learnable_channels(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int,
                        quant_min: int, quant_max: int, grad_factor: float = 1.0) -> Tensor:
    shape = [-1 if d == axis % self.ndim else 1 for d in range(self.ndim)]
    return _learnable(self, scale.view(shape), zero_point.view(shape), quant_min, quant_max,
                      grad_factor)


# ---- copies and changes of what is held ---------------------------------------------------------

@defines("_indices_copy")
def _indices(self: Tensor) -> Tensor:
    return self._indices().clone()


@defines("_values_copy")
def _values(self: Tensor) -> Tensor:
    return self._values().clone()


@defines("_reshape_alias_copy")
def _strided_copy(self: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    return self.as_strided(size, stride).clone()


@defines("_foreach_copy")
def _copies(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
            ) -> list[Tensor]:
    return [x.clone().copy_(y) for x, y in zip(self, src)]


@defines("_foreach_zero")
def _zeros(self: Sequence[Tensor]) -> list[Tensor]:
    return [flambeau.zeros_like(x) for x in self]


@defines("embedding_renorm")
def _renormed(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    return flambeau.embedding_renorm_(self.clone(), indices, max_norm, norm_type)


@defines("_index_put_impl")
def _index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False,
               unsafe: bool = False) -> Tensor:
    return flambeau.index_put(self, tuple(indices), values, accumulate)


@defines("set_data")
def _set_data(self: Tensor, new_data: Tensor) -> None:
    self.data = new_data


@defines("_is_zerotensor")
def _is_zero(self: Tensor) -> bool:
    return False


@defines("_has_same_storage_numel")
def _as_large(self: Tensor, other: Tensor) -> bool:
    return self.untyped_storage().nbytes() // self.element_size() \
        == other.untyped_storage().nbytes() // other.element_size()


@defines("_functional_assert_async")
def _assert_then(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    if not bool(self):
        raise RuntimeError(assert_msg)
    return dep_token.clone()


@defines("_functional_assert_scalar")
def _assert_number_then(self: Any, assert_msg: str, dep_token: Tensor) -> Tensor:
    if not self:
        raise RuntimeError(assert_msg)
    return dep_token.clone()


@defines("_make_dep_token")
def _token(*, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
           memory_format: Any = None) -> Tensor:
    return flambeau.empty((), dtype=dtype, device=device)
