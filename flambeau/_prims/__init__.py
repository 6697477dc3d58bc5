"""Ops of the namespace `prims`.

>>> import flambeau
>>> flambeau.ops.prims.convert_element_type(flambeau.ones(2), flambeau.int64)
tensor([1, 1])
"""
from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.library import Library

_library = Library("prims", "FRAGMENT")
_library.define("convert_element_type(Tensor a, ScalarType dtype) -> Tensor")


def _convert_element_type(a: Tensor, dtype: Any) -> Tensor:
    return a.to(dtype)


_library.impl("convert_element_type", _convert_element_type, "CompositeImplicitAutograd")
