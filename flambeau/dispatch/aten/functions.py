"""What computes the ops of PyTorch's dispatcher that are no ops of their own here: functions of
other namespaces, in-place forms, and compositions, under the dispatcher's names and arguments."""
from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.devices.backends import could_not_run
from flambeau.dispatch.aten.schemas import recorded
from flambeau.dispatch.members import member
from flambeau.ops.node_names import one_node

_SPACES = {"fft_": "fft", "linalg_": "linalg", "special_": "special"}
_own: dict[str, Callable[..., Any]] = {}


def find_function(name: str) -> Callable[..., Any] | None:
    """The function that computes `aten::name`; None if there is none."""
    _read()
    if name in _own:
        return _own[name]
    for prefix, space in _SPACES.items():
        found = getattr(getattr(flambeau, space), name.removeprefix(prefix), None) \
            if name.startswith(prefix) else None
        if callable(found):
            return found
    if name.endswith("_") and not name.startswith("_"):
        return _inplace_function(name[:-1])
    found = getattr(flambeau, name, None) or getattr(flambeau.nn.functional, name, None)
    if inspect.isroutine(found) or hasattr(found, "twin"):
        return found
    inplace = getattr(Tensor, f"{name}_", None)
    if callable(inplace):
        return lambda x, *args, **kwargs: inplace(x.clone(), *args, **kwargs)
    return None


@cache
def _read() -> None:
    """Import the modules that define further functions here."""
    for module in ("compositions", "convolutions", "fused_steps", "gradients"):
        importlib.import_module(f"flambeau.dispatch.aten.{module}")


def _inplace_function(base: str) -> Callable[..., Any] | None:
    """The in-place form of a function of `nn.functional`."""
    function = getattr(flambeau.nn.functional, base, None)
    if not callable(function) or "inplace" not in inspect.signature(function).parameters:
        return None
    return lambda x, *args, **kwargs: function(x, *args, **kwargs, inplace=True)


def defines(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say that the function under it computes the ops of these names."""
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _own[name] = function
        return function
    return register


# ---- sizes ---------------------------------------------------------------------------------------


@defines("sym_size")
def _size(self: Tensor, dim: int | None = None) -> Any:
    return list(self.shape) if dim is None else self.shape[dim]


@defines("sym_stride")
def _stride(self: Tensor, dim: int | None = None) -> Any:
    return list(self.stride()) if dim is None else self.stride(dim)


_own["sym_numel"] = Tensor.numel
_own["sym_storage_offset"] = Tensor.storage_offset
_own["_version"] = lambda self: self._version
_own["is_leaf"] = lambda self: self.is_leaf
_own["output_nr"] = lambda self: self.output_nr
_own["retains_grad"] = lambda self: self.retains_grad


@defines("sym_is_contiguous")
def _contiguous(self: Tensor, memory_format: Any = None) -> bool:
    return self.is_contiguous(memory_format=memory_format or flambeau.contiguous_format)


@defines("is_non_overlapping_and_dense")
def _dense(self: Tensor) -> bool:
    expected = 1
    for stride, size in sorted(zip(self.stride(), self.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


@defines("sym_constrain_range", "sym_constrain_range_for_size")
def _check_constraint(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


# ---- assertions ----------------------------------------------------------------------------------


@defines("_assert_async")
def _assert_tensor(self: Tensor, assert_msg: str = "Expected Tensor with single nonzero value") \
        -> None:
    if not bool(self):
        raise RuntimeError(assert_msg)


@defines("_assert_scalar")
def _assert_number(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


@defines("_assert_tensor_metadata")
def _assert_looks(a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *,
                  device: Any = None, layout: Any = None) -> None:
    for name, wanted, found in (("size", size, list(a.shape)), ("stride", stride, list(a.stride())),
                                ("dtype", dtype, a.dtype), ("device", device, a.device),
                                ("layout", layout, a.layout)):
        if wanted is not None and found != (list(wanted) if name in ("size", "stride") else wanted):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found}")


@defines("_new_zeros_with_same_feature_meta")
def _zeros_laid_out_as(self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """Zeros in memory as that of `other`, once for each of the first dimensions of `self`."""
    memory, batch = other.untyped_storage().nbytes() // other.element_size(), \
        self.shape[:self_num_batch_dims]
    strides = [memory * math.prod(batch[d + 1:]) for d in range(len(batch))]
    return other.new_zeros(memory * math.prod(batch)).as_strided(
        (*batch, *other.shape), (*strides, *other.stride()), other.storage_offset())


# ---- copies and views ----------------------------------------------------------------------------

_own["lift_fresh_copy"] = _own["lift"] = lambda self: self.clone()
_own["_stack"] = lambda tensors, dim=0: flambeau.stack(tensors, dim)
_own["_reshape_alias"] = lambda self, size, stride: self.as_strided(size, stride)
_own["_reshape_copy"] = lambda self, size: self.reshape(size).clone()
_own["_reshape_from_tensor"] = lambda self, shape: self.reshape(shape.tolist())
_own["_shape_as_tensor"] = lambda self: flambeau.tensor(self.shape)
_own["_unsafe_index"] = lambda self, indices: flambeau.ops.aten.index.Tensor(self, indices)
_own["_unsafe_index_put"] = lambda self, indices, values, accumulate=False: self.index_put(
    indices, values, accumulate)
_own["_index_put_impl_"] = lambda self, indices, values, accumulate=False, unsafe=False: (
    self.index_put_(indices, values, accumulate))
_own["_conj_copy"] = _own["_conj_physical"] = lambda self: self.conj_physical()
_own["_neg_view_copy"] = lambda self: -self
_own["_pin_memory"] = lambda self, device=None: self.clone()
_own["_to_cpu"] = lambda tensors: [t.cpu() for t in tensors]
_own["numpy_T"], _own["matrix_H"] = lambda self: self.T, lambda self: self.H
_own["mT"], _own["mH"] = lambda self: self.mT, lambda self: self.mH
_own["_print"] = print
_own["nonzero_numpy"] = lambda self: list(self.nonzero(as_tuple=True))
_own["data"] = lambda self: self.data
_own["flatten_dense_tensors"] = lambda tensors: flambeau.cat([t.flatten() for t in tensors])


@defines("unflatten_dense_tensors")
def _unflatten_dense(flat: Tensor, tensors: Any) -> list[Tensor]:
    parts = flat.split([t.numel() for t in tensors])
    return [part.view(t.shape) for part, t in zip(parts, tensors)]


for _name, _dtype in (("Byte", "uint8"), ("Char", "int8"), ("Double", "float64"),
                      ("Float", "float32"), ("Half", "float16"), ("Int", "int32"),
                      ("Long", "int64"), ("Short", "int16")):
    _own[f"_cast_{_name}"] = lambda self, non_blocking=False, _dtype=_dtype: self.to(
        getattr(flambeau, _dtype))

# ---- arithmetic ----------------------------------------------------------------------------------

_own["_is_all_true"], _own["_is_any_true"] = Tensor.all, Tensor.any
_own["_aminmax"] = lambda self, dim=None, keepdim=False: tuple(
    flambeau.aminmax(self, dim=dim, keepdim=keepdim))
_own["_euclidean_dist"] = lambda x1, x2: flambeau.cdist(x1, x2)
_own["_logcumsumexp"] = lambda self, dim: flambeau.logcumsumexp(self, dim)
_own["_linalg_eigvals"] = lambda self: flambeau.linalg.eigvals(self)
_own["_trilinear"] = lambda i1, i2, i3, e1, e2, e3, sumdim, unroll_dim=1: _trilinear(
    i1, i2, i3, e1, e2, e3, sumdim)


def _trilinear(a: Tensor, b: Tensor, c: Tensor, expand_a: Any, expand_b: Any, expand_c: Any,
               summed: Any) -> Tensor:
    for dim in expand_a:
        a = a.unsqueeze(dim)
    for dim in expand_b:
        b = b.unsqueeze(dim)
    for dim in expand_c:
        c = c.unsqueeze(dim)
    product = a * b * c
    return product.sum(tuple(summed)) if summed else product


@defines("_linalg_eigh")
def _eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, ...]:
    values, vectors = flambeau.linalg.eigh(A, UPLO)
    return values, vectors if compute_v else vectors.new_empty(0)


@defines("_linalg_svd")
def _svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
         ) -> tuple[Tensor, ...]:
    if compute_uv:
        return tuple(flambeau.linalg.svd(A, full_matrices))
    return A.new_empty(0), flambeau.linalg.svdvals(A), A.new_empty(0)


# ---- networks ------------------------------------------------------------------------------------

def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return v * (g / flambeau.norm_except_dim(v, 2, dim))


_fused_weight_norm = one_node(_weight_norm, name="WeightNormInterfaceBackward0")
_own["_weight_norm"] = lambda v, g, dim=0: (        # PyTorch's kernel takes either end
    _fused_weight_norm if dim in (0, v.ndim - 1) else _weight_norm)(v, g, dim)
_own["linear_backward"] = lambda self, grad_output, weight, output_mask: (
    grad_output @ weight if output_mask[0] else None,
    grad_output.flatten(0, -2).T @ self.flatten(0, -2) if output_mask[1] else None,
    grad_output.flatten(0, -2).sum(0) if output_mask[2] else None)


@defines("_convolution")
def _convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                 dilation: Any, transposed: bool, output_padding: Any, groups: int,
                 *options: Any) -> Tensor:
    return flambeau.convolution(input, weight, bias, stride, padding, dilation, transposed,
                                output_padding, groups)


@defines("_convolution_mode")
def _convolution_mode(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any,
                      padding: str, dilation: Any, groups: int) -> Tensor:
    function = getattr(flambeau.nn.functional, f"conv{weight.ndim - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)


INSIDE = frozenset("""conv_depthwise3d flatten_dense_tensors mkldnn_linear
    mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight pad_sequence slow_conv3d
    slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d thnn_conv2d
    unflatten_dense_tensors""".split())


@cache
def inside(name: str) -> Any:
    """A function of `torch._C._nn` that only the dispatcher's names lead to, bound by its
    schema."""
    def elsewhere(*args: Any) -> Any:
        raise could_not_run(name, "CPU", "Meta", "MkldnnCPU" if "mkldnn" in name else "CUDA")

    schemas = [one.schema for one in recorded()[name].values() if ".out(" not in one.schema]
    return member(*schemas, body=_own.get(name, elsewhere), method=False, namespace="_nn",
                  doc=f"The op {name}.")


@defines("pad_sequence")
def _pad_sequences(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                   padding_side: str = "right") -> Tensor:
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError("Expected padding_side to be one of left or right, but got "
                           f"{padding_side}.")
    length = max(sequence.size(0) for sequence in sequences)
    first, padded = sequences[0], []
    for sequence in sequences:
        if sequence.dtype is not first.dtype or sequence.shape[1:] != first.shape[1:]:
            sequence = first.new_empty((sequence.size(0), *first.shape[1:])).copy_(sequence)
        missing = length - sequence.size(0)
        border = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(flambeau.nn.functional.pad(sequence, (0, 0) * (sequence.dim() - 1) + border,
                                                 value=padding_value))
    return flambeau.stack(padded, 0 if batch_first else 1)


@defines("_pad_circular")
def _pad_circular(self: Tensor, pad: Any) -> Tensor:
    return flambeau.nn.functional.pad(self, pad, mode="circular")


@defines("_pad_enum")
def _pad_enum(self: Tensor, pad: Any, mode: int, value: float | None = None) -> Tensor:
    names = ("constant", "reflect", "replicate", "circular")
    return flambeau.nn.functional.pad(self, pad, names[mode], value if mode == 0 else None)


@defines("_addmm_activation")
def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1,
                      use_gelu: bool = False) -> Tensor:
    found = flambeau.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return flambeau.nn.functional.gelu(found, approximate="tanh") if use_gelu else found.relu()


@defines("embedding_backward", "embedding_sparse_backward")
def _embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int,
                        scale_grad_by_freq: bool, sparse: bool = False) -> Tensor:
    return flambeau.ops.aten.embedding_dense_backward(grad, indices, num_weights, padding_idx,
                                                      scale_grad_by_freq)


__all__ = ["find_function"]
