"""Functions of torch whose names begin with an underscore, and that libraries call all the same;
and those that only other devices have, which say so.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau._support.devices.backends import could_not_run
from flambeau.core.tensor import Tensor
from flambeau.dispatch.aten.schemas import recorded
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.ops.linalg import grouped_products
from flambeau.ops.python.list_updates import all_finite, update_list

_grouped_mm = grouped_products.grouped_mm
if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...      # those made in loops


@op("_shape_as_tensor(Tensor self) -> Tensor", method=False)
def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes of a tensor, as a tensor.

    >>> flambeau._shape_as_tensor(flambeau.ones(2, 3))
    tensor([2, 3])
    """
    return flambeau.tensor(list(self.shape), dtype=flambeau.int64)


@member("_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool", method=False)
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """May `input.data` be set to the other: are both of one layout, on one type of device?"""
    return input.layout is from_.layout and input.device.type == from_.device.type


@member("_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool? requires_grad=False) -> Tensor",
        method=False)
def _efficientzerotensor(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any,
                         requires_grad: Any) -> Tensor:
    """Zeros. PyTorch's take no memory until somebody reads them."""
    return flambeau.zeros(size, dtype=dtype, device=device, requires_grad=bool(requires_grad))


@op("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, "
    "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
    "(Tensor, Tensor, Tensor, Tensor)", method=False, out=False)
def _embedding_bag_forward_only(*values: Any) -> tuple[Tensor, ...]:
    """`_embedding_bag` where no gradient will be asked for."""
    with flambeau.no_grad():
        return flambeau._embedding_bag(*values)


@op("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, "
    "int padding_mode, bool align_corners) -> Tensor", method=False)
def _grid_sampler_2d_cpu_fallback(*values: Any) -> Tensor:
    """`grid_sampler_2d`, which has one kernel here."""
    return flambeau.grid_sampler_2d(*values)


@member("_nnpack_available() -> bool", method=False)
def _nnpack_available() -> bool:
    """Can `_nnpack_spatial_convolution` be called?"""
    return True


@op("_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, "
    "SymInt[2] stride=1) -> Tensor", method=False)
def _nnpack_spatial_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any,
                                stride: Any) -> Tensor:
    """`conv2d`, by the kernel that it always has here."""
    return flambeau.conv2d(input, weight, bias, stride, padding)


# ---- conversions ---------------------------------------------------------------------------------


def _cast(name: str, dtype: Any) -> Callable[..., Tensor]:
    def cast(self: Tensor, non_blocking: bool) -> Tensor:
        return self.to(dtype, non_blocking)
    cast.__doc__ = f"The tensor as one of {dtype}."
    return op(f"{name}(Tensor self, bool non_blocking=False) -> Tensor", method=False)(cast)


CASTS = {"Byte": flambeau.uint8, "Char": flambeau.int8, "Short": flambeau.int16,
         "Int": flambeau.int32, "Long": flambeau.int64, "Half": flambeau.float16,
         "Float": flambeau.float32, "Double": flambeau.float64}
for _name, _dtype in CASTS.items():
    globals()[f"_cast_{_name}"] = _cast(f"_cast_{_name}", _dtype)


@op("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
    method=False)
def _convert_indices_from_coo_to_csr(self: Tensor, size: int, out_int32: bool) -> Tensor:
    """The rows of sorted places, as the place where each row begins.

    >>> flambeau._convert_indices_from_coo_to_csr(flambeau.tensor([0, 0, 1, 3]), 4)
    tensor([0, 2, 3, 3, 4])
    """
    if self.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.dim()} dimensional "
                           "tensor.")
    _integers(self, "convert_indices_from_coo_to_csr_cpu")
    ends = flambeau.bincount(self.long(), minlength=size).cumsum(0)
    return flambeau.cat([ends.new_zeros(1), ends]).to(_index_type(out_int32))


@op("_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, "
    "bool out_int32=False, bool transpose=False) -> Tensor", method=False)
def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, out_int32: bool,
                                     transpose: bool) -> Tensor:
    """Rows and columns of places, whose rows are given by where each begins.

    >>> rows = flambeau.tensor([0, 2, 3])
    >>> flambeau._convert_indices_from_csr_to_coo(rows, flambeau.tensor([0, 1, 1]))
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    for indices in (crow_indices, col_indices):
        _integers(indices, "convert_indices_from_csr_to_coo_cpu")
    counts = (crow_indices[..., 1:] - crow_indices[..., :-1]).reshape(-1)
    lines = flambeau.arange(counts.numel()).repeat_interleave(counts)
    *stacks, height = counts.new_empty(crow_indices.shape).shape
    rows = [lines % (height - 1), col_indices.reshape(-1).long()]
    if transpose:
        rows.reverse()
    if stacks:
        places = flambeau.unravel_index(lines // (height - 1), tuple(stacks))
        rows = [*places, *rows]
    return flambeau.stack(rows).to(_index_type(out_int32))


def _integers(indices: Tensor, kernel: str) -> None:
    if indices.dtype.is_floating_point or indices.dtype.is_complex:
        name = {flambeau.float32: "Float", flambeau.float64: "Double"}.get(
            indices.dtype, str(indices.dtype))
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def _index_type(int32: bool) -> Any:
    return flambeau.int32 if int32 else flambeau.int64


# ---- scaled gradients ----------------------------------------------------------------------------


def _amp_foreach_non_finite_check_and_unscale_(self: list[Tensor], found_inf: Tensor,
                                               inv_scale: Tensor) -> None:
    """Multiply gradients by `inv_scale`, in place, and set `found_inf` to 1 if one is not finite.
    """
    for name, tensor in (("inv_scale", inv_scale), ("found_inf", found_inf)):
        if tensor.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if tensor.dtype is not flambeau.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    with flambeau.no_grad():
        finite = all_finite(self)
        if finite is None:
            finite = all(flambeau.isfinite(grad).all() for grad in self)
        if not finite:
            found_inf.fill_(1.0)
        factor = inv_scale.item()
        if factor != 1.0 and not update_list("scale", self, numbers=[(factor,)]):
            for grad in self:
                grad.mul_(inv_scale.to(grad.device))


def _amp_update_scale_(self: Tensor, growth_tracker: Tensor, found_inf: Tensor,
                       scale_growth_factor: float, scale_backoff_factor: float,
                       growth_interval: int) -> Tensor:
    """Adapt a scale, in place: less after gradients that were not finite, more after
    `growth_interval` steps without."""
    for name, tensor, dtype, kind in (
            ("growth_tracker", growth_tracker, flambeau.int32, "an int"),
            ("current_scale", self, flambeau.float32, "a float"),
            ("found_inf", found_inf, flambeau.float32, "a float")):
        if tensor.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if tensor.dtype is not dtype:
            raise RuntimeError(f"{name} must be {kind} tensor.")
    with flambeau.no_grad():
        if found_inf.item():
            self.mul_(scale_backoff_factor)
            growth_tracker.fill_(0)
        elif growth_tracker.item() + 1 == growth_interval:
            grown = self * scale_growth_factor
            if flambeau.isfinite(grown).all():
                self.copy_(grown)
            growth_tracker.fill_(0)
        else:
            growth_tracker.add_(1)
    return self


# ---- what other libraries have ------------------------------------------------------------------


def _elsewhere(name: str) -> Callable[..., Any]:
    own = ("QuantizedCPU",) if "quantized" in name else ("MkldnnCPU",) if "mkldnn" in name else \
        ("SparseCPU",) if name == "native_norm" else ()

    def refused(*args: Any) -> Any:
        if "quantized" in name and getattr(args[0], "is_quantized", False):
            from flambeau.ops.quantized.calls import LIBRARY
            if name in LIBRARY:
                return LIBRARY[name](*args)
        raise could_not_run(name, "CPU", "Meta", *own)
    schemas = [one.schema for one in recorded()[name].values() if "out" not in one.facts]
    return member(*schemas, body=refused, method=False,
                  doc="NotImplementedError: this op is for other devices.")


ELSEWHERE = (
    "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator "
    "cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu "
    "cudnn_convolution_transpose cudnn_grid_sampler fbgemm_linear_fp16_weight "
    "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
    "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
    "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix miopen_batch_norm "
    "miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
    "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
    "mkldnn_adaptive_avg_pool2d mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d "
    "mkldnn_rnn_layer native_norm choose_qparams_optimized empty_quantized quantized_batch_norm "
    "quantized_gru_cell quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d "
    "quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell").split()
for _name in ELSEWHERE:
    globals()[_name] = _elsewhere(_name)


@op("cudnn_is_acceptable(Tensor self) -> bool", method=False)
def cudnn_is_acceptable(self: Tensor) -> bool:
    """False: there is no cuDNN."""
    return False


@op("is_vulkan_available() -> bool")
def is_vulkan_available() -> bool:
    """False: there is no Vulkan."""
    return False


@op("mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, int[] padding, int[] stride, "
    "int[] dilation, int groups) -> Tensor", method=False)
def mkldnn_convolution(self: Tensor, weight: Tensor, bias: Tensor | None, padding: Any,
                       stride: Any, dilation: Any, groups: int) -> Tensor:
    """A convolution, by the package's own kernels."""
    return flambeau.convolution(self, weight, bias, stride, padding, dilation, False,
                                [0] * len(padding), groups)


@op("batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, "
    "float momentum) -> (Tensor, Tensor)", method=False, out=False)
def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None,
                            running_var: Tensor | None, momentum: float) -> Any:
    """The mean and the variance of each channel; the running ones move towards them.

    >>> import flambeau
    >>> flambeau.batch_norm_update_stats(flambeau.tensor([[1.0], [3.0]]), None, None, 0.1)
    (tensor([2.]), tensor([1.]))
    """
    dims = [d for d in range(input.dim()) if d != 1]
    variance, mean = flambeau.var_mean(input, dims, correction=0)
    count = input.numel() // input.shape[1]
    if running_mean is not None:
        running_mean.lerp_(mean.detach(), momentum)
    if running_var is not None:
        running_var.lerp_(variance.detach() * (count / (count - 1)), momentum)
    return mean, variance


# ---- numbers that may be symbols -----------------------------------------------------------------


def sym_sqrt(a: Any) -> Any:
    """The square root of a number."""
    import math
    return math.sqrt(a)


sym_sqrt.__name__ = sym_sqrt.__qualname__ = "_sym_sqrt"         # as PyTorch calls it


@op("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", method=False)
def sym_constrain_range(size: Any, min: int | None = None, max: int | None = None) -> None:
    """RuntimeError unless a number is in a range."""
    low = -2**63 if min is None else min
    high = 2**63 - 1 if max is None else max
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@op("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
    method=False)
def sym_constrain_range_for_size(size: Any, min: int | None = None, max: int | None = None
                                 ) -> None:
    """RuntimeError unless a number is in a range, and not negative."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _nested_view_from_buffer(input: Tensor, nested_size: Tensor, nested_strides: Tensor,
                             offsets: Tensor) -> Tensor:
    """The tensors with these sizes, strides and offsets in a vector, as a nested tensor."""
    parts = [input.as_strided(tuple(size), tuple(stride), offset) for size, stride, offset in zip(
        nested_size.tolist(), nested_strides.tolist(), offsets.tolist(), strict=True)]
    return flambeau.nested.as_nested_tensor(parts)


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """Of each row the elements up to those that the mask leaves out, as a nested tensor."""
    if mask.dtype is not flambeau.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Expected mask to be left-aligned")
    return flambeau.nested.as_nested_tensor([row[:n] for row, n in zip(t, mask.sum(1).tolist())])


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Does the mask leave out ends of rows only?"""
    return bool((mask.long().diff(dim=1) <= 0).all())


def _nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor,
                        fuse_transform_0213: bool = False) -> Tensor:
    """The parts with these sizes of a padded tensor."""
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    return flambeau.nested.as_nested_tensor([
        row[tuple([slice(n) for n in sizes])]
        for row, sizes in zip(padded, cpu_nested_shape_example.tolist())])
