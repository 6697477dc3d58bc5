"""The opaque layout `torch._mkldnn`: tensors whose elements nobody but their own ops may see.

In PyTorch an accelerating library arranges the elements of such a tensor as it likes. Here they lie
plainly, in `_array`, and nothing is gained in speed: the layout is there so that programs that use
it run. It has PyTorch's few ops and refuses the others as PyTorch does, and it has neither strides
nor a storage.

An op on opaque tensors is the op on their elements between two conversions, each of which has the
other for its derivative. So the history of a result is that of the elements; the conversion that
ends it is named after the op, as PyTorch's node is.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from flambeau._support.source_locations import bump, counter_of
from flambeau.core import devices, dtypes, type_info
from flambeau.core.calling import overrides
from flambeau.core.modes import grad_enabled
from flambeau.core.op import public
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import SeenAsTensor, Tensor, alias, as_leaf, tensor_types, wrap
from flambeau.core.views import check_inplace, rebase, rebase_to_zero_grad
from flambeau.dispatch.backend_errors import check_fit, without_kernel, without_rule
from flambeau.dispatch.members import member
from flambeau.ops.coercion import each_result
from flambeau.ops.sparse.values import sparse_op
from flambeau.ops.view.conversion import cast, clone

HELD = (dtypes.float32, dtypes.bfloat16, dtypes.float16, dtypes.uint8, dtypes.int8)
_NAMES = "float, bfloat16, half, uint8, int8"


class OpaqueTensor(SeenAsTensor, Tensor):
    """A dense tensor of the opaque layout. Users see it as `Tensor` with `is_mkldnn`."""

    layout = type_info.mkldnn
    is_mkldnn = property(lambda self: True)

    @property
    def data(self) -> OpaqueTensor:
        return alias(self._array, OpaqueTensor)

    @data.setter
    def data(self, value: Tensor) -> None:
        if type(value) is not OpaqueTensor:
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                               "`tensor` have incompatible tensor type.")
        self._array = value._array

    def stride(self, dim: int | None = None) -> Any:
        """What PyTorch answers: the numbers mean nothing."""
        strides = (1,) + (0,) * (self._array.ndim - 1)
        return strides if dim is None else strides[wrap_dim(dim, len(strides))]

    def is_contiguous(self, memory_format: Any = type_info.contiguous_format) -> bool:
        return memory_format is type_info.contiguous_format

    def storage_offset(self) -> int:
        return 0

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def tolist(self) -> Any:
        return self.data_ptr()

    def untyped_storage(self) -> Any:
        raise NotImplementedError("Cannot access storage of OpaqueTensorImpl")

    def numpy(self, *, force: bool = False) -> np.ndarray:
        raise TypeError("can't convert Mkldnn layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.numpy()

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def item(self) -> Any:
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to "
                               "Scalar")
        raise _could_not_run("_local_scalar_dense")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            raise RuntimeError("Unimplemented backend MkldnnCPU")
        return self.to(dtype)

    def set_(self, *args: Any, **kwargs: Any) -> Tensor:
        raise _could_not_run("set_")

    def resize_(self, *sizes: Any, **kwargs: Any) -> Tensor:
        raise _could_not_run("resize_")

    def view(self, *shape: Any) -> Tensor:
        _refuse("view")

    def new_zeros(self, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        return public["torch"]["zeros"](*size, dtype=dtype or self.dtype, layout=self.layout,
                                        requires_grad=requires_grad)

    def transpose_(self, *dims: Any) -> Tensor:
        raise RuntimeError("mkldnn_transpose_: in-place mkldnn operations are not supported yet")

    def __getitem__(self, index: Any) -> Tensor:
        raise _could_not_run("as_strided")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _could_not_run("as_strided")

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The elements as an ordinary tensor, as another of the types this layout takes if
        `dtype` says so."""
        if dtype is not None and dtype not in HELD:
            raise RuntimeError(f"Unsupported dtype for ideep public tensor: {dtype}")
        return _densify(self, dtype)

    def to_mkldnn(self, dtype: Any = None) -> Tensor:
        raise _could_not_run("to_mkldnn")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support "
                               "the deepcopy protocol at the moment.")
        return self.untyped_storage()

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return self.untyped_storage()


for _member, _names in (
        ("untyped_storage", "storage _typed_storage is_shared share_memory_ is_pinned pin_memory "
                            "storage_type"),
        ("new_zeros", "new_empty"), ("transpose_", "t_ swapaxes_ swapdims_")):
    for _name in _names.split():
        setattr(OpaqueTensor, _name, vars(OpaqueTensor)[_member])


OpaqueTensor.__module__ = "torch"
OpaqueTensor.__name__ = OpaqueTensor.__qualname__ = "Tensor"
overrides.internal_types.add(OpaqueTensor)


# ---- the two conversions -------------------------------------------------------------------------

def _cast(array: np.ndarray, dtype: Any) -> np.ndarray:
    return array.copy() if dtype is None else cast(wrap(array), dtype.numpy)._array.copy()


@functools.cache
def _conversion_op(node_name: str) -> Callable[..., Tensor]:
    """The op that makes a tensor opaque, whose nodes have this name."""
    def make_opaque(self: Tensor, dtype: Any) -> Tensor:
        return alias(np.ascontiguousarray(_cast(self._array, dtype)), OpaqueTensor)

    def back(grad: Tensor, self: Tensor) -> list[Tensor]:
        if type(grad) is not OpaqueTensor:
            raise RuntimeError("invalid gradient at index 0 - expected layout Mkldnn but got "
                               "Strided")
        return [grad.to_dense(self.dtype)]
    return sparse_op(node_name, params="dtype", vjp=back, kind="linear",
                     batch=_not_batched)(make_opaque)


def _not_batched(size: int, dims: Any, *canonical: Any) -> NoReturn:
    raise RuntimeError("vmap: tensors with layout torch._mkldnn cannot be batched")


@sparse_op("ToDenseBackward0", params="dtype", kind="linear", batch=_not_batched,
           vjp=lambda grad, self: [_conversion_op("ToMkldnnBackward0")(grad, self.dtype)])
def _densify(self: Tensor, dtype: Any) -> Tensor:
    return wrap(_cast(self._array, dtype))


@member("to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor", function=False)
def to_mkldnn(self: Tensor, dtype: Any) -> Tensor:
    """This dense tensor in the opaque layout `torch._mkldnn`; `to_dense` leads back.

    The layout is for programs that use PyTorch's: here the elements lie as they always do. Only the
    ops that PyTorch has for it take such tensors, most of them those of convolutional networks.

    >>> import flambeau
    >>> x = flambeau.tensor([-1.0, 2.0]).to_mkldnn()
    >>> x.relu()
    tensor([0., 2.], layout=torch._mkldnn)
    >>> x.relu().to_dense()
    tensor([0., 2.])
    """
    if self.layout is not type_info.strided or self.device is not devices.cpu:
        raise NotImplementedError(f"to_mkldnn of a tensor with layout {self.layout} on "
                                  f"{self.device}")
    if self.dtype not in HELD:
        raise RuntimeError(f"dense_to_mkldnn expects {_NAMES} tensor input")
    if dtype is not None and dtype not in HELD:
        raise RuntimeError("cpu tensor only can be converted to be a float, bfloat16, half, uint8, "
                           "int8 mkldnn tensor")
    if not self._array.ndim:
        raise RuntimeError("could not create a primitive descriptor for the reorder primitive. Run "
                           "workload with environment variable ONEDNN_VERBOSE=all to get "
                           "additional diagnostic information.")
    return _conversion_op("ToMkldnnBackward0")(self, dtype)


def uncovered(tensor: Tensor) -> Tensor:
    """The elements themselves, without history: what is written there changes `tensor`."""
    return wrap(tensor._array)


def made(name: str, shape: tuple[int, ...], dtype: np.dtype, requires_grad: bool) -> Tensor:
    """`zeros` and `empty` in this layout."""
    if name not in ("zeros", "empty"):
        raise _could_not_run("fill_.Scalar")
    if dtypes.from_numpy_dtype(dtype) not in HELD:
        raise RuntimeError("get_mkldnn_dtype: unsupported data type")
    result = alias(np.zeros(shape, dtype), OpaqueTensor)
    return as_leaf(result) if requires_grad else result


# ---- how other calls get here --------------------------------------------------------------------

# The ops there are, with the names of their nodes where those are not the plain op's.
OPS = dict.fromkeys("""add mul multiply relu sigmoid tanh softmax gelu prelu clone transpose t mT mH
    H adjoint swapaxes swapdims conv1d conv2d conv3d conv_transpose2d conv_transpose3d avg_pool2d
    avg_pool3d batch_norm""".split(), "")
OPS |= dict.fromkeys("reshape reshape_as flatten".split(), "MkldnnReshapeBackward0")
OPS |= {"linear": "MkldnnLinearBackward0", "max_pool2d": "MkldnnMaxPool2DBackward0",
        "max_pool3d": "MkldnnMaxPool3DBackward0",
        "adaptive_avg_pool2d": "MkldnnAdaptiveAvgPool2DBackward0"}
_VIEWS = frozenset("""as_strided squeeze unsqueeze permute expand expand_as narrow unbind select
    slice split chunk movedim moveaxis diagonal tile getitem iter index T avg_pool1d
    adaptive_avg_pool1d unfold""".split())

_RESHAPES = frozenset("view view_as unflatten ravel group_norm".split())


def _could_not_run(name: str) -> NotImplementedError:
    return without_kernel(name, "MkldnnCPU")


def _refuse(name: str) -> NoReturn:
    if name in _RESHAPES:
        raise RuntimeError("Currently Mkldnn tensor does not support view. Change to use reshape "
                           "instead")
    raise _could_not_run("as_strided")


def _densify_arguments(value: Any) -> Any:
    """Arguments with the elements of each opaque tensor in its place."""
    if type(value) is OpaqueTensor:
        return _densify(value, None)
    if type(value) in (list, tuple):
        return type(value)([_densify_arguments(v) for v in value])
    return {k: _densify_arguments(v) for k, v in value.items()} if type(value) is dict else value


def _make_opaque(dense: Tensor, node_name: str) -> Tensor:
    own = dense.grad_fn
    return _conversion_op(node_name or ("" if own is None else own.name()) or "ToMkldnnBackward0")(
        dense, None)


def _check_operands(name: str, args: Any) -> None:
    """Sums and products are of opaque tensors of one shape; a product may be with a number."""
    a, b = args[:2]
    number = name != "add" and type(a) is OpaqueTensor and (
        type(b) not in tensor_types or (type(b) is Tensor and not b._array.ndim))
    if number:
        return
    if name != "add" and type(a) is OpaqueTensor and a._array.shape != b._array.shape:
        raise RuntimeError("mkldnn_mul_out: currently mkldnn not support broadcasting")
    if not type(a) is type(b) is OpaqueTensor:
        raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
    if a._array.shape != b._array.shape:
        raise RuntimeError("could not create a primitive descriptor for the sum primitive: shapes "
                           f"{list(a._array.shape)} and {list(b._array.shape)} differ")


def _write(op: Any, args: Any, kwargs: Any) -> Tensor:
    """An in-place op: the op, whose result is written to the tensor's elements."""
    target, functional = args[0], op.functional
    check_inplace(target, any(type(a) in tensor_types and a.requires_grad for a in args))
    source = target.data                # its elements are copied: the write does not count for it
    source._edge = target._edge
    return _store(target, dispatch(functional.function, (source, *args[1:]), kwargs))


def _store(target: Tensor, result: Tensor) -> Tensor:
    target._array[...] = result._array
    bump(target)
    if grad_enabled() and result._edge is not None:
        rebase(target, result._edge)
    return target


def _copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    check_inplace(target, target.requires_grad or source.requires_grad)
    if not type(target) is type(source) is OpaqueTensor:
        raise RuntimeError("copy_mkldnn_: between mkldnn layout and dense Tensors is not "
                           f"implemented! Found self type = {_title(target)} and src type = "
                           f"{_title(source)}")
    return _store(target, dispatch(clone, (source,), {}))


def _fill(target: Tensor, value: Any) -> Tensor:
    """There is `zero_`, and no other number."""
    check_inplace(target, target.requires_grad)
    if value != 0:
        raise _could_not_run("fill_.Scalar")
    target._array[...] = 0
    bump(target)
    if grad_enabled() and target._edge is not None:
        rebase_to_zero_grad(target)
    return target


def _title(tensor: Tensor) -> str:
    opaque = type(tensor) is OpaqueTensor
    return ("Mkldnn" if opaque else "") + wrap(tensor._array).type()


def _detach(tensor: Tensor) -> Tensor:
    result = tensor.data
    result._counter = counter_of(tensor)
    return result


def _keep_as_it_is(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`to`, `contiguous` and their like, which can only give the tensor as it is."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, str | devices.device) and devices.device(value).type != "cpu":
            raise NotImplementedError("Unsupported device type for mkldnn layout: "
                                      f"{devices.device(value).type}")
        if (isinstance(value, dtypes.dtype) and value is not tensor.dtype) \
                or (value is True and kwargs.get("copy")):
            raise _could_not_run("empty_strided")
        if isinstance(value, type_info.memory_format) \
                and value not in (type_info.contiguous_format, type_info.preserve_format):
            raise RuntimeError("unsupported memory format option ChannelsLast")
    return tensor


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if training and p:
        raise _could_not_run("empty_strided")
    return input


_OTHERS: dict[str, Any] = {
    "copy_": _copy, "fill_": _fill, "zero_": lambda t: _fill(t, 0), "detach": _detach,
    "to": _keep_as_it_is, "cpu": _keep_as_it_is, "contiguous": _keep_as_it_is,
    "float": lambda t: _keep_as_it_is(t, dtypes.float32),
    "half": lambda t: _keep_as_it_is(t, dtypes.float16),
    "type_as": lambda t, other: _keep_as_it_is(t, other.dtype), "dropout": _dropout,
    "bfloat16": lambda t: _keep_as_it_is(t, dtypes.bfloat16),
    "double": lambda t: _keep_as_it_is(t, dtypes.float64),
    "numel": lambda t: t._array.size, "is_same_size": lambda a, b: a.shape == b.shape,
    "is_floating_point": lambda t: t.dtype.is_floating_point, "is_complex": lambda t: False,
    "conj": lambda t: t, "real": lambda t: t, "is_conj": lambda t: False,
    "is_nonzero": bool}


def dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with an opaque argument."""
    fit = check_fit(function, args, kwargs)
    op = getattr(function, "op", None)
    name = (op.name if op is not None else function.__name__).strip("_")
    inplace = op is not None and op.inplace
    if inplace and op.functional.name in OPS:
        return _write(op, args, kwargs)
    if f"{name}_" in _OTHERS and (inplace or name == "copy" or function is Tensor.fill_):
        return _OTHERS[f"{name}_"](*args, **kwargs)
    if name in _OTHERS:
        return _OTHERS[name](*args, **kwargs)
    if name not in OPS:
        if name in _RESHAPES or name in _VIEWS:
            _refuse(name)
        return without_rule(function, args, kwargs, "MkldnnCPU", "Mkldnn", fit)
    out = kwargs.pop("out", None)
    if name in ("add", "mul", "multiply"):
        _check_operands(name, args)
        if out is not None and type(out) is not OpaqueTensor:
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
    elif kwargs.get("return_indices"):
        raise RuntimeError("'memory_format' argument is incompatible with mkldnn tensor")
    elif name == "batch_norm" and (len(args) < 4 or args[3] is None):
        raise RuntimeError("mkldnn_batch_norm: currently mkldnn only support affine model")
    result = function(*_densify_arguments(args), **_densify_arguments(kwargs))
    result = each_result(result, lambda r: _make_opaque(r, OPS[name]))
    return result if out is None else _store(out, result)


overrides.own_rules[OpaqueTensor] = dispatch
__all__ = ["OpaqueTensor"]
