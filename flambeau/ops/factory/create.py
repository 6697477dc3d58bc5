"""Making tensors: of a value, of a matrix's diagonal or triangle, with given strides."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flambeau._support.settings import filled_if_deterministic
from flambeau.core.promotion import convert
from flambeau.core.shapes import extents_of, size_of
from flambeau.core.tensor import Tensor
from flambeau.dispatch.factory import FORMAT, OPTIONS, factory
from flambeau.dispatch.members import member
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.coercion import as_element, beyond_c
from flambeau.ops.factory.from_data import tensor, warn_of_copies
from flambeau.ops.out_types import NO_RESIZING
from flambeau.transforms.meta import memory as hollow

# ---- filled with a value -------------------------------------------------------------------------


def _full_kernel(shape: tuple[int, ...], value: Any, target: np.dtype) -> np.ndarray:
    if type(value) is int and not -2**63 <= value < 2**64:
        raise beyond_c(value)
    array = np.empty(shape, target)
    array[...] = convert(np.asarray(as_element(value, target)), target)
    return array


def _empty_kernel(shape: Any, target: np.dtype) -> np.ndarray:
    return filled_if_deterministic(np.empty(shape, target))


zeros = factory(f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor", kernel=np.zeros, native="zeros",
                negative="zeros: Dimension size must be non-negative.",
                out=True, overlap="anywhere",
                doc="""A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> import flambeau
    >>> flambeau.zeros(2)
    tensor([0., 0.])
    """)
ones = factory(f"ones(SymInt[] size, *, {OPTIONS}) -> Tensor", kernel=np.ones, native="ones",
               out=True, overlap="anywhere",
               doc="A tensor of ones: `ones(2, 3)` or `ones((2, 3))`.")
empty = factory(f"empty.memory_format(SymInt[] size, *, {OPTIONS}, {FORMAT}) -> Tensor",
                kernel=_empty_kernel, native="empty", out=True, out_reported_as=NO_RESIZING,
                doc="A tensor with whatever values its memory had.")
full = factory(f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor",
               kernel=_full_kernel, native="full", type="value", out=True, overlap="anywhere",
               doc="A tensor of shape `size` filled with `fill_value`, whose type it takes.")

zeros_like = factory(f"zeros_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor", like=True,
                     kernel=np.zeros, native="zeros",
                     doc="Zeros in the shape, type and layout of `input`.")
ones_like = factory(f"ones_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor", like=True,
                    kernel=np.ones, native="ones",
                    doc="Ones in the shape, type and layout of `input`.")
empty_like = factory(f"empty_like(Tensor self, *, {OPTIONS}, {FORMAT}) -> Tensor", like=True,
                     kernel=_empty_kernel, native="empty",
                     doc="An uninitialised tensor in the shape, type and layout of `input`.")
full_like = factory(f"full_like(Tensor self, Scalar fill_value, *, {OPTIONS}, {FORMAT}) -> Tensor",
                    like=True, kernel=_full_kernel, native="full",
                    doc="`fill_value` in the shape, type and layout of `input`.")

for _name, _kernel in (("zeros", np.zeros), ("ones", np.ones), ("empty", _empty_kernel)):
    factory(f"new_{_name}(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", method=True,
            kernel=_kernel, native=_name,
            doc=f"`{_name}` with this tensor's type and device unless given.")
factory(f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor",
        method=True, kernel=_full_kernel, native="full",
        doc="`full` with this tensor's type and device unless given.")

scalar_tensor = factory(
    f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", native="scalar",
    kernel=lambda value, target: _full_kernel((), value, target),
    doc="""A 0-d tensor that holds the number `s`, in the default floating type unless said
    otherwise.

    >>> import flambeau
    >>> flambeau.scalar_tensor(2)
    tensor(2.)
    """)


@member("new_tensor(Tensor self, object data, *, ScalarType dtype=None, Device? device=None, "
        "bool requires_grad=False) -> Tensor", function=False)
def new_tensor(self: Tensor, data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """`tensor` with this tensor's type and device unless given."""
    if isinstance(data, Tensor):
        warn_of_copies("tensor.new_tensor")
        data = data.detach()
    if hasattr(self, "_level"):             # one slice of a batch: a new tensor for each
        return self._level.repeated(tensor(data, dtype=dtype or self.dtype))
    return tensor(data, dtype=dtype or self.dtype, device=device or self._device,
                  requires_grad=requires_grad)


# ---- matrices ------------------------------------------------------------------------------------


def _eye_kernel(n: int, m: int | None, target: np.dtype) -> np.ndarray:
    for name, value in (("n", n), ("m", m)):
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    if target.char in characters("UW"):
        raise no_kernel("eye", target)
    return np.eye(n, m, dtype=target)


eye = factory(f"eye(SymInt n, *, {OPTIONS}) -> Tensor", f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) "
              "-> Tensor", kernel=_eye_kernel, native="eye", out=True, overlap="anywhere",
              doc="A matrix with ones on the diagonal.")


def _declare_triangle(name: str) -> None:
    of = {"tril_indices": np.tril_indices, "triu_indices": np.triu_indices}[name]

    def kernel(row: int, col: int, offset: int, target: np.dtype) -> np.ndarray:
        for title, extent in (("row", row), ("col", col)):
            if extent < 0:
                raise RuntimeError(f"{title} must be non-negative, got{extent}")
        if target.name not in ("int64", "int32"):
            raise no_kernel(name, target)
        return np.stack(of(row, offset, col)).astype(target)
    factory(f"{name}(int row, int col, int offset=0, *, "
            f"{OPTIONS.replace('dtype=None', 'dtype=long')}) -> Tensor", kernel=kernel,
            native=name, type=np.dtype(np.int64),
            doc=f"Row and column numbers of the {name[:4]} part of a matrix.")


_declare_triangle("tril_indices"), _declare_triangle("triu_indices")

# ---- with strides --------------------------------------------------------------------------------


def _empty_strided_kernel(size: Any, stride: Any, target: np.dtype,
                          memory: Any = _empty_kernel) -> np.ndarray:
    shape, steps = extents_of(size), size_of((stride,))
    if len(shape) != len(steps):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of "
                           f"strides ({len(steps)})")
    if steps and min(steps) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and "
                           f"strides={list(steps)}")
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, steps)) if 0 not in shape else 0
    return np.ndarray(shape, target, memory(extent, target), 0,
                      tuple([s * target.itemsize for s in steps]))


def _empty_permuted_kernel(size: Any, physical_layout: Any, target: np.dtype,
                           memory: Any = _empty_kernel
                           ) -> np.ndarray:
    shape, order = size_of((size,)), size_of((physical_layout,))
    if len(shape) != len(order):
        raise RuntimeError("Number of dimensions in size does not match the length of the "
                           f"physical_layout; i.e. len(size) = {len(shape)} is not equal to "
                           f"len(physical_layout) = {len(order)}")
    steps = [0] * len(shape)
    extent = 1
    for i, dim in reversed(list(enumerate(order))):
        if not 0 <= dim < len(shape):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and "
                               f"{len(shape) - 1}, but got {dim} at index {i}).  NB: negative dims "
                               "not currently supported; file an issue if you want it.")
        if dim in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
        steps[dim] = extent
        extent *= max(shape[dim], 1)
    return _empty_strided_kernel(shape, steps, target, memory)


_hollow_strided = functools.partial(_empty_strided_kernel, memory=hollow)
_hollow_permuted = functools.partial(_empty_permuted_kernel, memory=hollow)


empty_strided = factory(
    f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor",
    kernel=_empty_strided_kernel, hollow=_hollow_strided, native="empty_strided",
    doc="An uninitialised tensor with the given strides (in elements).")
factory(f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor",
        method=True, kernel=_empty_strided_kernel, hollow=_hollow_strided, native="empty_strided",
        doc="`empty_strided` with this tensor's type and device unless given.")
empty_permuted = factory(
    f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor",
    kernel=_empty_permuted_kernel, hollow=_hollow_permuted, native="empty_permuted",
    doc="""An uninitialised tensor without gaps, whose dimensions lie in memory in the given order,
    the outermost first.

    >>> import flambeau
    >>> flambeau.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
    (4, 8, 1)
    """)

