"""Questions about tensors and types: what they are, and what type an expression would have."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import promotion
from flambeau.core.dtypes import dtype
from flambeau.core.op import module_of, public
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor
from flambeau.core.views import check_inplace
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.ops import out_types
from flambeau.ops.inplace import write


def is_tensor(obj: Any, /) -> bool:
    """Is this a Tensor?"""
    return isinstance(obj, Tensor)


@op("_assert_async(Tensor self) -> ()", "_assert_async.msg(Tensor self, str assert_msg) -> ()",
    method=False, out=False)
def _assert_async(self: Tensor, assert_msg: str | None) -> None:
    """Raise RuntimeError if a tensor of one element is zero."""
    if self.device.type != "meta" and not self:
        raise RuntimeError(
            assert_msg or "Expected Tensor with single nonzero value, but got zero")


# ---- types --------------------------------------------------------------------------------------


@member("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
        "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
        "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
        "result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType", method=False)
def result_type(*operands: Any) -> dtype:
    """The type of an expression over two tensors or numbers.

    >>> import flambeau
    >>> flambeau.result_type(flambeau.tensor([1, 2]), 1.0)
    torch.float32
    """
    both = [value for value in operands if value is not None]
    return promotion.result_type([t._array for t in both if isinstance(t, Tensor)],
                                 [t for t in both if not isinstance(t, Tensor)])


@member("can_cast(ScalarType from_, ScalarType to) -> bool", method=False)
def can_cast(from_: dtype, to: dtype) -> bool:
    """May values of the one type be stored as the other, as promotion has it?

    >>> import flambeau
    >>> flambeau.can_cast(flambeau.float64, flambeau.float32)
    True
    """
    return out_types.can_cast(from_, to)


@member("promote_types(ScalarType type1, ScalarType type2) -> ScalarType", method=False)
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that values of both types can become.

    >>> import flambeau
    >>> flambeau.promote_types(flambeau.uint8, flambeau.int8)
    torch.int16
    """
    return promotion.join(type1, type2)


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape that operands of these shapes broadcast to.

    >>> import flambeau
    >>> flambeau.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    for shape in shapes:
        if not isinstance(shape, (int, list, tuple)):
            raise RuntimeError("Input shapes should be of type ints, a tuple of ints, or a list of "
                               f"ints, got {shape}")
    given = [(s,) if isinstance(s, int) else s for s in shapes]
    common = [1] * max([len(shape) for shape in given], default=0)
    for i, shape in enumerate(given):
        for place in range(-1, -len(shape) - 1, -1):
            extent = shape[place]
            if extent in (1, common[place]):
                continue
            if common[place] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {extent} at {place}! "
                    f"Mismatching argument at index {i} had {shape}; but expected shape should be "
                    f"broadcastable to {common}")
            if extent < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            common[place] = extent
    return Size(common)


for _function in (is_tensor, broadcast_shapes):
    _function.__module__ = module_of("torch" if _function is is_tensor else "functional")
    public["torch"].setdefault(_function.__name__, _function)

# ---- a Python function for each element ---------------------------------------------------------


def _mapped(self: Tensor, function: Any, others: tuple[Tensor, ...]) -> Tensor:
    arrays = [self._array, *[t.expand(self._array.shape)._array for t in others]]
    values = [function(*[x.item() for x in row])
              for row in zip(*[a.reshape(-1) for a in arrays])]
    wrong = next((v for v in values if isinstance(v, str)), None)
    if wrong is not None:
        raise TypeError("must be real number, not str")
    check_inplace(self, False)
    return write(self, np.asarray(values).astype(self._array.dtype).reshape(self._array.shape))


def _refuse_gradients(*tensors: Tensor, name: str) -> None:
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use "
                           f"var.detach().{name}() instead.")


@member("apply_(Tensor(a!) self, object callable) -> Tensor(a!)", function=False)
def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element)`: slow, and outside of autograd."""
    _refuse_gradients(self, name="apply_")
    return _mapped(self, callable, ())


@member("map_(Tensor(a!) self, Tensor other, object callable) -> Tensor(a!)", function=False)
def map_(self: Tensor, other: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element, element of other)`."""
    _refuse_gradients(self, other, name="map_")
    return _mapped(self, callable, (other,))


@member("map2_(Tensor(a!) self, Tensor x, Tensor y, object callable) -> Tensor(a!)",
        function=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element by `callable(element, element of x, element of y)`."""
    _refuse_gradients(self, x, y, name="map2_")
    return _mapped(self, callable, (x, y))


__all__ = ["can_cast", "is_tensor", "promote_types", "result_type"]
