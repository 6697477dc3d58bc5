"""Names that tracing compilers give to unknown numbers, and what they may know about ops.

Sizes are Python numbers here, always known: programs that ask `isinstance(n, flambeau.SymInt)`
learn that it is not one.

>>> import flambeau
>>> isinstance(flambeau.zeros(3).shape[0], (int, flambeau.SymInt))
True
"""
from __future__ import annotations

import enum
from typing import Any

from flambeau._support.own_methods import define_in_subclasses


@define_in_subclasses("__init__")
class _Symbol:
    def __init__(self, node: Any):
        raise NotImplementedError(f"symbolic numbers: torch.{type(self).__name__}")


class SymInt(_Symbol):
    """An integer that is not known yet. There are none."""


class SymFloat(_Symbol):
    """A floating-point number that is not known yet. There are none."""


class SymBool(_Symbol):
    """A truth value that is not known yet. There are none."""


class Tag(enum.Enum):
    """What can be said of an op, for `flambeau.library.define`.

    >>> Tag.pointwise
    <Tag.pointwise: 16>
    """

    (core, cudagraph_unsafe, data_dependent_output, dynamic_output_shape, flexible_layout,
     generated, inplace, inplace_view, maybe_aliasing_or_mutating, needs_contiguous_strides,
     needs_exact_strides, needs_fixed_stride_order, nondeterministic_bitwise,
     nondeterministic_seeded, out, out_variant, pointwise, pt2_compliant_tag, reduction,
     view_copy) = range(20)

    def __int__(self) -> int:
        return self.value


for _cls in (SymInt, SymFloat, SymBool, Tag):
    _cls.__module__ = "torch"
__all__ = ["SymBool", "SymFloat", "SymInt", "Tag"]
